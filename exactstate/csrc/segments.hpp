// Segments. A segment is a run of consecutive input rows that one state travels through.
//
// Batches, padding, packed sequences, resets and chunks are all lists of segments, six numbers each:
//   row       its first row in the flat input and output
//   length    how many rows it reads
//   padding   how many rows follow that hold its last state
//   sequence  which sequence it belongs to, and
//   time      at which step of it the segment begins: together with the seed they determine the noise
//   local     its first row in the buffers of this call, where segments lie back to back
#pragma once
#include "parallel.hpp"

namespace exactstate {

struct Segment {
    int64_t row, length, padding, sequence, time, local;
};

// Walks through local rows in order and says where each one lives.
class Cursor {
  public:
    Cursor(const Segment* segments, int64_t count, int64_t local) : segments_(segments), count_(count) {
        auto later = [](int64_t value, const Segment& segment) { return value < segment.local; };
        which_ = std::max<int64_t>(0, std::upper_bound(segments, segments + count, local, later) - segments - 1);
        offset_ = count ? local - segments[which_].local : 0;
        settle();
    }
    bool done() const { return which_ >= count_; }
    int64_t row() const { return segments_[which_].row + offset_; }
    int64_t sequence() const { return segments_[which_].sequence; }
    int64_t time() const { return segments_[which_].time + offset_; }
    void next() {
        ++offset_;
        settle();
    }

  private:
    void settle() {  // segments of length zero are stepped over
        while (which_ < count_ && offset_ >= segments_[which_].length) {
            ++which_;
            offset_ = 0;
        }
    }
    const Segment* segments_;
    int64_t count_, which_, offset_;
};

inline int64_t local_rows(const Segment* segments, int64_t count) {
    return count ? segments[count - 1].local + segments[count - 1].length : 0;
}

}  // namespace exactstate
