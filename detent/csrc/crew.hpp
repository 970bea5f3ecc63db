// Threads that stay: starting one takes longer than many a job does.
//
// Workers are started when they are first wanted, look out for work for a moment after each job, and then sleep. One
// caller has them at a time; whoever comes meanwhile does without. They are never joined: at exit they are asleep, and
// a child of fork() begins with none.
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

namespace detent {

class Crew {
  public:
    // Nobody else's until the Turn ends; `crew` is null if somebody has it.
    class Turn {
      public:
        Turn() : crew(one().turn_.try_lock() ? &one() : nullptr) {}
        ~Turn() { if (crew) crew->turn_.unlock(); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        Crew* const crew;
    };

    // work(0) .. work(workers - 1), each on a thread of its own as far as there are any, the first on the caller's.
    template <class Work>
    void run(int64_t workers, Work& work) noexcept {
        const int64_t called = grown_to(workers - 1);
        left_.store(called, std::memory_order_relaxed);
        for (int64_t worker = 1; worker <= called; ++worker)
            members_[worker - 1]->call([](void* job, int64_t number) { (*static_cast<Work*>(job))(number); }, &work, worker);
        work(0);
        for (int64_t worker = called + 1; worker < workers; ++worker) work(worker);
        look_out([&] { return left_.load(std::memory_order_acquire) == 0; }, lock_, finished_);
    }

  private:
    typedef void (*Job)(void*, int64_t);
    static constexpr std::chrono::microseconds PATIENCE{50};  // about what it takes to fall asleep and be woken

    struct Member {
        explicit Member(Crew& crew) { std::thread([this, &crew] { serve(crew); }).detach(); }
        void call(Job what, void* with, int64_t as) {
            job = what, context = with, number = as;
            {
                std::lock_guard<std::mutex> held(lock);
                called.store(true, std::memory_order_release);
            }
            bell.notify_one();
        }
        [[noreturn]] void serve(Crew& crew) {
            while (true) {
                look_out([&] { return called.load(std::memory_order_acquire); }, lock, bell);
                called.store(false, std::memory_order_relaxed);
                job(context, number);
                if (crew.left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                    { std::lock_guard<std::mutex> held(crew.lock_); }  // the caller is awake, or asleep: not in between
                    crew.finished_.notify_one();
                }
            }
        }
        Job job = nullptr;
        void* context = nullptr;
        int64_t number = 0;
        std::atomic<bool> called{false};
        std::mutex lock;
        std::condition_variable bell;
    };

    // How many of `wanted` members there are, after starting those that the system allows.
    int64_t grown_to(int64_t wanted) {
        try {
            while (int64_t(members_.size()) < wanted) members_.push_back(std::make_unique<Member>(*this));
        } catch (const std::system_error&) {
        }
        return std::min(wanted, int64_t(members_.size()));
    }

    template <class Ready>
    static void look_out(Ready ready, std::mutex& lock, std::condition_variable& bell) {
        for (const auto end = std::chrono::steady_clock::now() + PATIENCE; std::chrono::steady_clock::now() < end; rest())
            if (ready()) return;
        std::unique_lock<std::mutex> held(lock);
        bell.wait(held, ready);
    }

    static void rest() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    // Never destroyed: workers may outlive every static object. A child of fork() has a new one.
    static Crew& one() {
        static const int watched = pthread_atfork(nullptr, nullptr, [] { current().store(new Crew); });
        (void)watched;
        return *current().load();
    }
    static std::atomic<Crew*>& current() {
        static std::atomic<Crew*> crew{new Crew};
        return crew;
    }

    std::mutex turn_, lock_;
    std::condition_variable finished_;
    std::atomic<int64_t> left_{0};
    std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace detent
