// Cut [0, count) into one range per thread and call work(begin, end) on each.
// Results never depend on the number of threads: ranges write to disjoint places.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "thread_pool.hpp"

namespace exactstate {

constexpr int64_t GRAIN = 1 << 17;  // numbers written in about the time that it takes to wake a thread

// How many threads speed up a job that writes so many numbers; a multiply-add into a register counts for an eighth.
inline int useful_threads(int64_t numbers, int threads) {
    return int(std::max<int64_t>(1, std::min<int64_t>(threads, numbers / GRAIN)));
}

template <class Work>
void parallel_ranges(int64_t count, int threads, Work work) {
    const int64_t workers = std::max<int64_t>(1, std::min<int64_t>(threads, count));
    if (workers == 1) {
        if (count > 0) work(int64_t{0}, count);
        return;
    }
    auto share = [&](int64_t worker) { work(count * worker / workers, count * (worker + 1) / workers); };
    ThreadPool::Lease lease;
    if (lease.pool)
        lease.pool->run(workers, share);
    else
        for (int64_t worker = 0; worker < workers; ++worker) share(worker);
}

}  // namespace exactstate

#define EXACTSTATE_API extern "C" __attribute__((visibility("default")))
