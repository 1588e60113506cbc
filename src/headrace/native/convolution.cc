#include "convolution.h"

#include <dlfcn.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

#if DNNL_VERSION_MAJOR != 3
#error "oneDNN 3 is needed"
#endif

namespace headrace {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Key = std::array<int64_t, kLengthOfGeometry + 1>;

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Beyond so many the one that was used longest ago is forgotten.
constexpr size_t kMostPrimitives = 1024;

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// --- threads ---------------------------------------------------------------------------------

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
    if (threads == 1) {
      SetThreads(1);
      work();
      return;
    }
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

  // Of the calling thread. Builds of the library without OpenMP count by themselves.
  static void SetThreads(int threads) {
    static const auto set =
        reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set != nullptr && threads > 0) set(threads);
  }

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::list<Job> jobs_;
};

// --- scratch memory --------------------------------------------------------------------------

// Memory for what is neither operand nor result. Given back it is used again, by whatever comes.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex());
    auto& spare = Spare();
    for (auto it = spare.begin(); it != spare.end(); ++it) {
      if (it->second >= bytes) {
        data_ = it->first, size_ = it->second;
        spare.erase(it);
        return;
      }
    }
    if (!spare.empty()) {  // too small: one that fits takes its place
      std::free(spare.front().first);
      spare.pop_front();
    }
    const size_t unit = bytes >= kHugePage ? kHugePage : kAlignment;
    size_ = (bytes + unit - 1) / unit * unit;
    data_ = size_ == 0 ? nullptr : std::aligned_alloc(unit, size_);
    if (size_ != 0 && data_ == nullptr) throw std::bad_alloc();
  }
  ~Scratch() {
    if (data_ == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex());
    Spare().emplace_back(data_, size_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  using Pieces = std::list<std::pair<void*, size_t>>;
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }
  static Pieces& Spare() {
    static auto* spare = new Pieces;
    return *spare;
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// --- geometry --------------------------------------------------------------------------------

struct Geometry {
  Pass pass;
  int64_t rank, batch, groups, inputs, outputs;
  Dims in, taps, out, strides, dilations, before, after;

  explicit Geometry(const int64_t* g)
      : pass(static_cast<Pass>(g[0])),
        rank(g[1]),
        batch(g[2]),
        groups(g[3]),
        inputs(g[4]),
        outputs(g[5]) {
    Dims* const each[] = {&in, &taps, &out, &strides, &dilations, &before, &after};
    for (int i = 0; i < 7; ++i) {
      const int64_t* at = g + 6 + i * kMostSpatial;
      each[i]->assign(at, at + rank);
    }
    for (int64_t& d : dilations) --d;  // the library counts what lies between two taps
  }

  // [batch, channels, spatial...] that lies in memory as [batch, spatial..., channels].
  memory::desc Data(int64_t channels, const Dims& sizes) const {
    Dims dims{batch, channels}, strides(rank + 2);
    dims.insert(dims.end(), sizes.begin(), sizes.end());
    strides[1] = 1;
    int64_t step = channels;
    for (int64_t d = rank + 1; d >= 2; --d) {
      strides[d] = step;
      step *= dims[d];
    }
    strides[0] = step;
    return {dims, memory::data_type::f32, strides};
  }

  Dims FilterDims() const {
    Dims dims = groups > 1 ? Dims{groups, outputs / groups, inputs / groups}
                           : Dims{outputs, inputs};
    dims.insert(dims.end(), taps.begin(), taps.end());
    return dims;
  }

  // The filter as it lies in memory: [spatial..., channels in of a group, channels out].
  memory::desc Filter() const {
    const int64_t lead = groups > 1 ? 1 : 0;
    const Dims dims = FilterDims();
    Dims strides(dims.size());
    if (lead) strides[0] = outputs / groups;
    strides[lead] = 1;
    strides[lead + 1] = outputs;
    int64_t step = outputs * dims[lead + 1];
    for (int64_t d = dims.size() - 1; d >= lead + 2; --d) {
      strides[d] = step;
      step *= dims[d];
    }
    return {dims, memory::data_type::f32, strides};
  }

  memory::desc AnyFilter() const {
    return {FilterDims(), memory::data_type::f32, memory::format_tag::any};
  }
};

// --- primitives ------------------------------------------------------------------------------

// A convolution that is compiled, and what it needs besides its operands.
struct Prepared {
  dnnl::primitive convolution;
  dnnl::reorder reorder;  // of the filter, where `reorders`
  memory::desc first, second, result, filter, scratch;
  bool reorders = false;
  std::string name;
};

template <typename Description>
void Take(const Description& found, const memory::desc& filter, const memory::desc& plain,
          bool writes_filter, Prepared* made) {
  made->filter = filter;
  made->scratch = found.scratchpad_desc();
  made->name = found.impl_info_str();
  made->reorders = filter != plain;
  if (made->reorders) {
    dnnl::primitive_attr attributes;
    const auto [from, to] = writes_filter ? std::pair(filter, plain) : std::pair(plain, filter);
    made->reorder = dnnl::reorder({Cpu(), from, Cpu(), to, attributes});
  }
}

Prepared Prepare(const int64_t* numbers, bool only_describe) {
  const Geometry g(numbers);
  const auto x = g.Data(g.inputs, g.in), y = g.Data(g.outputs, g.out);
  const auto plain = g.Filter(), any = g.AnyFilter();
  const auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  Prepared made;
  const dnnl::convolution_forward::primitive_desc forward(
      Cpu(), dnnl::prop_kind::forward_training, algorithm, x, any, y, g.strides, g.dilations,
      g.before, g.after, attributes);
  if (g.pass == Pass::kForward) {
    made.first = x, made.second = plain, made.result = y;
    Take(forward, forward.weights_desc(), plain, false, &made);
    if (!only_describe) made.convolution = dnnl::convolution_forward(forward);
  } else if (g.pass == Pass::kInput) {
    const dnnl::convolution_backward_data::primitive_desc found(
        Cpu(), algorithm, x, any, y, g.strides, g.dilations, g.before, g.after, forward,
        attributes);
    made.first = plain, made.second = y, made.result = x;
    Take(found, found.weights_desc(), plain, false, &made);
    if (!only_describe) made.convolution = dnnl::convolution_backward_data(found);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc found(
        Cpu(), algorithm, x, any, y, g.strides, g.dilations, g.before, g.after, forward,
        attributes);
    made.first = x, made.second = y, made.result = plain;
    Take(found, found.diff_weights_desc(), plain, true, &made);
    if (!only_describe) made.convolution = dnnl::convolution_backward_weights(found);
  }
  return made;
}

// The prepared convolutions, the one that was used last in front.
class Cache {
 public:
  static Cache& Get() {
    static Cache* cache = new Cache;
    return *cache;
  }

  std::shared_ptr<const Prepared> Find(const Key& key) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = places_.find(key);
      if (found != places_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return entries_.front().second;
      }
    }
    auto made = std::make_shared<const Prepared>(Prepare(key.data() + 1, false));
    std::lock_guard<std::mutex> lock(mutex_);
    if (places_.count(key)) return places_[key]->second;
    entries_.emplace_front(key, made);
    places_[key] = entries_.begin();
    if (entries_.size() > kMostPrimitives) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return made;
  }

  size_t size() {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }

 private:
  using Entries = std::list<std::pair<Key, std::shared_ptr<const Prepared>>>;
  std::mutex mutex_;
  Entries entries_;
  std::map<Key, Entries::iterator> places_;
};

memory At(const memory::desc& desc, const void* data) {
  return memory(desc, Cpu(), const_cast<void*>(data));
}

void Execute(const Prepared& made, Pass pass, const float* first, const float* second,
             float* result) {
  const size_t filter_bytes = made.reorders ? Rounded(made.filter.get_size()) : 0;
  const Scratch scratch(filter_bytes + made.scratch.get_size());
  const dnnl::stream stream(Cpu());
  const float* plain = pass == Pass::kForward ? second : pass == Pass::kInput ? first : result;
  const memory filter = At(made.filter, made.reorders ? scratch.data() : (const void*)plain);
  if (made.reorders && pass != Pass::kFilter) {
    const auto& desc = pass == Pass::kForward ? made.second : made.first;
    made.reorder.execute(stream, {{DNNL_ARG_FROM, At(desc, plain)}, {DNNL_ARG_TO, filter}});
  }
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SCRATCHPAD, At(made.scratch, scratch.data() + filter_bytes)}};
  if (pass == Pass::kForward) {
    arguments.insert({{DNNL_ARG_SRC, At(made.first, first)},
                      {DNNL_ARG_WEIGHTS, filter},
                      {DNNL_ARG_DST, At(made.result, result)}});
  } else if (pass == Pass::kInput) {
    arguments.insert({{DNNL_ARG_WEIGHTS, filter},
                      {DNNL_ARG_DIFF_DST, At(made.second, second)},
                      {DNNL_ARG_DIFF_SRC, At(made.result, result)}});
  } else {
    arguments.insert({{DNNL_ARG_SRC, At(made.first, first)},
                      {DNNL_ARG_DIFF_DST, At(made.second, second)},
                      {DNNL_ARG_DIFF_WEIGHTS, filter}});
  }
  made.convolution.execute(stream, arguments);
  if (made.reorders && pass == Pass::kFilter) {
    made.reorder.execute(
        stream, {{DNNL_ARG_FROM, filter}, {DNNL_ARG_TO, At(made.result, result)}});
  }
}

}  // namespace

bool Convolve(const int64_t* geometry, int threads, const float* first, const float* second,
              float* result, std::string* error) {
  Key key;
  key[0] = threads;  // the library divides the work when it compiles
  std::copy(geometry, geometry + kLengthOfGeometry, key.begin() + 1);
  try {
    Runner::Get().Run(threads, [&] {
      const auto made = Cache::Get().Find(key);
      Execute(*made, static_cast<Pass>(geometry[0]), first, second, result);
    });
    return true;
  } catch (const std::exception& failure) {
    *error = std::string("oneDNN: ") + failure.what();
    return false;
  }
}

bool HasFastConvolution(const int64_t* geometry, int threads) {
  bool fast = false;
  try {
    Runner::Get().Run(threads, [&] {
      fast = Prepare(geometry, true).name.compare(0, 3, "ref") != 0;
    });
  } catch (const std::exception&) {
    return false;  // it has none at all
  }
  return fast;
}

size_t CountOfPrimitives() { return Cache::Get().size(); }

}  // namespace headrace
