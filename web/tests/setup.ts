/** Tests that compute for long leave Vitest no time to report: between two of them there is some. */

import { beforeEach } from "vitest";

beforeEach(() => new Promise<void>((done) => void setTimeout(done)));
