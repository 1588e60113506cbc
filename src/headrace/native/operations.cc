#include "operations.h"

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "prepared.h"
#include "team.h"

namespace headrace {
namespace {

// Beyond so many the one that was used longest ago is forgotten.
constexpr size_t kMostPrepared = 1024;

using Key = std::vector<int64_t>;

Prepared Prepare(const Operation& operation, const int64_t* numbers) {
  if (operation.number == kConvolution.number) return PrepareConvolution(numbers);
  if (operation.number == kProduct.number) return PrepareProduct(numbers);
  return PreparePool(numbers);
}

// The prepared cases, the one that was used last in front.
class Cache {
 public:
  static Cache& Get() {
    static Cache* cache = new Cache;
    return *cache;
  }

  std::shared_ptr<const Prepared> Find(const Operation& operation, const int64_t* numbers,
                                       int threads) {
    // The library divides the work when it compiles.
    Key key{operation.number, threads};
    key.insert(key.end(), numbers, numbers + operation.length);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = places_.find(key);
      if (found != places_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return entries_.front().second;
      }
    }
    auto made = std::make_shared<const Prepared>(Prepare(operation, numbers));
    std::lock_guard<std::mutex> lock(mutex_);
    if (places_.count(key)) return places_[key]->second;
    entries_.emplace_front(key, made);
    places_[key] = entries_.begin();
    if (entries_.size() > kMostPrepared) {
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

bool HasInstructions(int64_t element) {
  constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return static_cast<Element>(element) != Element::kBfloat16 || (isa & needed) == needed;
}

}  // namespace

bool Run(const Operation& operation, const int64_t* numbers, int threads,
         const std::vector<Buffer>& operands, Buffer result, std::string* error) {
  try {
    OnTeam(threads, [&] {
      Cache::Get().Find(operation, numbers, threads)->Execute(operands, result);
    });
    return true;
  } catch (const std::exception& failure) {
    *error = std::string("oneDNN, ") + operation.name + ": " + failure.what();
    return false;
  }
}

bool IsFast(const Operation& operation, const int64_t* numbers, int threads) {
  bool fast = false;
  try {
    OnTeam(threads, [&] {
      fast = HasInstructions(numbers[0]) &&
             Cache::Get().Find(operation, numbers, threads)->is_fast();
    });
  } catch (const std::exception&) {
    return false;  // it has none at all
  }
  return fast;
}

size_t CountOfPrepared() { return Cache::Get().size(); }

}  // namespace headrace
