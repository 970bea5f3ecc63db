import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

/** Put the one script and the one style sheet into the page, so that it is a single file that works from file://. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = Object.values(bundle).find((file) => file.fileName.endsWith(".html"));
      if (page?.type !== "asset") throw new Error("the build has no page");
      let html = String(page.source);
      let digest = "";
      for (const file of Object.values(bundle)) {
        if (file.type === "chunk") {
          html = html.replace(/<script type="module"[^>]*><\/script>\s*/, "");
          const code = file.code.trim().replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
          digest = createHash("sha256").update(code).digest("base64");
          html = html.replace("</body>", () => `<script id="play-script">${code}</script>\n</body>`);
          delete bundle[file.fileName];
        } else if (file.fileName.endsWith(".css")) {
          html = html.replace(/<link rel="stylesheet"[^>]*>\s*/, "");
          html = html.replace("</head>", () => `<style id="play-style">${String(file.source).trim()}</style>\n</head>`);
          delete bundle[file.fileName];
        }
      }
      // nothing is loaded, and no script runs but this one: a name in a file could not become one even as markup
      const policy = `default-src 'none'; script-src 'sha256-${digest}'; worker-src blob:; style-src 'unsafe-inline'; img-src data:`;
      page.source = html.replace("<title>", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<title>`);
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: {
    target: "es2022",
    outDir: "dist",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: { output: { format: "iife", inlineDynamicImports: true } },
  },
  worker: { format: "iife" },
  test: {
    testTimeout: 600_000,
    hookTimeout: 600_000,
    fileParallelism: false,
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
  },
} as Parameters<typeof defineConfig>[0]);
