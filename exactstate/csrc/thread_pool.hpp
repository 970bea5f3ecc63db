// A thread pool: starting a thread takes longer than many jobs.
//
// Workers are started when first needed, spin for a moment after each job, and then sleep. One caller uses the pool at a
// time; a second caller runs its job alone. Workers are never joined: at exit they are asleep. A child of fork() starts
// with an empty pool.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace exactstate {

class ThreadPool {
  public:
    // Exclusive use of the pool until the Lease ends; `pool` is null if another caller has it.
    class Lease {
      public:
        Lease() : pool(one().lease_.try_lock() ? &one() : nullptr) {}
        ~Lease() { if (pool) pool->lease_.unlock(); }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ThreadPool* const pool;
    };

    // work(0) .. work(workers - 1), each on its own thread as far as the system has any, the first on the caller's.
    template <class Work>
    void run(int64_t workers, Work& work) noexcept {
        const int64_t called = start_workers(workers - 1);
        running_.store(called, std::memory_order_relaxed);
        for (int64_t worker = 1; worker <= called; ++worker)
            workers_[worker - 1]->call([](void* job, int64_t number) { (*static_cast<Work*>(job))(number); }, &work, worker);
        work(0);
        for (int64_t worker = called + 1; worker < workers; ++worker) work(worker);
        spin_then_wait([&] { return running_.load(std::memory_order_acquire) == 0; }, lock_, finished_);
    }

  private:
    typedef void (*Job)(void*, int64_t);
    static constexpr std::chrono::microseconds SPIN_TIME{50};  // about the time to fall asleep and be woken

    struct Worker {
        explicit Worker(ThreadPool& pool) { std::thread([this, &pool] { loop(pool); }).detach(); }
        void call(Job what, void* with, int64_t as) {
            job = what, context = with, number = as;
            {
                std::lock_guard<std::mutex> held(lock);
                called.store(true, std::memory_order_release);
            }
            wake.notify_one();
        }
        [[noreturn]] void loop(ThreadPool& pool) {
            while (true) {
                spin_then_wait([&] { return called.load(std::memory_order_acquire); }, lock, wake);
                called.store(false, std::memory_order_relaxed);
                job(context, number);
                if (pool.running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                    { std::lock_guard<std::mutex> held(pool.lock_); }  // the caller cannot be between its check and its wait
                    pool.finished_.notify_one();
                }
            }
        }
        Job job = nullptr;
        void* context = nullptr;
        int64_t number = 0;
        std::atomic<bool> called{false};
        std::mutex lock;
        std::condition_variable wake;
    };

    // Start workers until there are `wanted` or the system refuses; how many of them there are.
    int64_t start_workers(int64_t wanted) {
        try {
            while (int64_t(workers_.size()) < wanted) workers_.push_back(std::make_unique<Worker>(*this));
        } catch (const std::system_error&) {
        }
        return std::min(wanted, int64_t(workers_.size()));
    }

    template <class Ready>
    static void spin_then_wait(Ready ready, std::mutex& lock, std::condition_variable& wake) {
        for (const auto end = std::chrono::steady_clock::now() + SPIN_TIME; std::chrono::steady_clock::now() < end; relax())
            if (ready()) return;
        std::unique_lock<std::mutex> held(lock);
        wake.wait(held, ready);
    }

    static void relax() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    // Never destroyed: workers may outlive every static object. A child of fork() has a new one.
    static ThreadPool& one() {
        static const int watched = pthread_atfork(nullptr, nullptr, [] { current().store(new ThreadPool); });
        (void)watched;
        return *current().load();
    }
    static std::atomic<ThreadPool*>& current() {
        static std::atomic<ThreadPool*> pool{new ThreadPool};
        return pool;
    }

    std::mutex lease_, lock_;
    std::condition_variable finished_;
    std::atomic<int64_t> running_{0};
    std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace exactstate
