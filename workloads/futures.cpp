// Threads that wait for each kind of thing of C++'s standard library, each named after it: `futures SECONDS`.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <sys/prctl.h>
#include <thread>
#include <vector>

static std::mutex mutex;
static std::condition_variable condition;
static bool is_over;

template <typename Run> static std::thread start(const char *name, Run run) {
    return std::thread([name, run] {
        prctl(PR_SET_NAME, name);
        run();
    });
}

int main(int count, char **arguments) {
    std::chrono::duration<double> time(count > 1 ? std::atof(arguments[1]) : 1);
    std::mutex held;
    std::promise<int> promise;
    std::shared_future<int> future = promise.get_future();
    held.lock();
    std::vector<std::thread> threads;
    threads.push_back(start("mutex", [&held] { std::lock_guard<std::mutex> guard(held); }));
    threads.push_back(start("condition", [] {
        std::unique_lock<std::mutex> guard(mutex);
        condition.wait(guard, [] { return is_over; });
    }));
    threads.push_back(start("future", [future] { future.get(); }));
    threads.push_back(start("joins", [time] { start("sleeps", [time] { std::this_thread::sleep_for(time); }).join(); }));
    std::this_thread::sleep_for(time);
    held.unlock();
    {
        std::lock_guard<std::mutex> guard(mutex);
        is_over = true;
    }
    condition.notify_all();
    promise.set_value(1);
    for (auto &thread : threads) thread.join();
}
