#include "team.h"

#include <dlfcn.h>

#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

namespace headrace {
namespace {

// Of the calling thread. Builds of the library without OpenMP count by themselves.
void SetThreads(int threads) {
  static const auto set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr && threads > 0) set(threads);
}

// The library's team belongs to the thread that calls it. XLA calls from any thread of its pool,
// and each would get a team of its own: so one thread of ours makes all calls, one after another.
class Runner {
 public:
  // Never deleted: its thread may outlive static destructors.
  static Runner& Get() {
    static Runner* runner = new Runner;
    return *runner;
  }

  void Run(int threads, const std::function<void()>& work) {
    std::exception_ptr failure;
    bool done = false;
    std::unique_lock<std::mutex> lock(mutex_);
    jobs_.push_back({threads, &work, &failure, &done});
    wake_.notify_one();
    finished_.wait(lock, [&] { return done; });
    if (failure) std::rethrow_exception(failure);
  }

 private:
  struct Job {
    int threads;
    const std::function<void()>* work;
    std::exception_ptr* failure;
    bool* done;
  };

  Runner() { std::thread(&Runner::Loop, this).detach(); }

  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return !jobs_.empty(); });
      Job job = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      std::exception_ptr failure;
      try {
        SetThreads(job.threads);
        (*job.work)();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      *job.failure = failure;
      *job.done = true;
      finished_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::list<Job> jobs_;
};

}  // namespace

void OnTeam(int threads, const std::function<void()>& work) {
  if (threads == 1) {
    SetThreads(1);
    work();
  } else {
    Runner::Get().Run(threads, work);
  }
}

}  // namespace headrace
