#include "prepared.h"

#include <cstdlib>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_map>

#if DNNL_VERSION_MAJOR != 3
#error "oneDNN 3 is needed"
#endif

namespace headrace {
namespace {

using dnnl::memory;

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t Rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

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
    size_ = Rounded(bytes, unit);
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

}  // namespace

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type TypeOf(int64_t element) {
  switch (static_cast<Element>(element)) {
    case Element::kFloat32:
      return memory::data_type::f32;
    case Element::kBfloat16:
      return memory::data_type::bf16;
  }
  throw std::invalid_argument("no such type of elements");
}

memory::desc ChannelsLast(int64_t batch, int64_t channels, const Dims& sizes,
                          memory::data_type type) {
  Dims dims{batch, channels}, strides(sizes.size() + 2);
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  strides[1] = 1;
  int64_t step = channels;
  for (size_t d = dims.size() - 1; d >= 2; --d) {
    strides[d] = step;
    step *= dims[d];
  }
  strides[0] = step;
  return {dims, type, strides};
}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void Prepared::Reorder(size_t from, size_t to) {
  const dnnl::reorder::primitive_desc found(Cpu(), pieces_[from], Cpu(), pieces_[to],
                                            Attributes());
  steps_.push_back({dnnl::reorder(found),
                    {{DNNL_ARG_FROM, from},
                     {DNNL_ARG_TO, to},
                     {DNNL_ARG_SCRATCHPAD, Scratch(found.scratchpad_desc())}}});
}

size_t Prepared::Wanted(size_t piece, const memory::desc& wanted) {
  if (pieces_[piece] == wanted) return piece;
  const size_t made = Scratch(wanted);
  Reorder(piece, made);
  return made;
}

void Prepared::Give(size_t piece) {
  if (piece != result()) Reorder(piece, result());
}

void Prepared::Execute(const std::vector<Buffer>& operands, Buffer result) const {
  std::vector<Buffer> given = operands;
  given.push_back(result);
  if (given.size() != operands_ + 1) throw std::invalid_argument("another number of operands");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].bytes != pieces_[i].get_size()) {
      throw std::invalid_argument("operand " + std::to_string(i) + " has " +
                                  std::to_string(given[i].bytes) + " bytes, not " +
                                  std::to_string(pieces_[i].get_size()));
    }
  }
  size_t bytes = 0;
  for (size_t i = given.size(); i < pieces_.size(); ++i) {
    bytes += Rounded(pieces_[i].get_size(), kAlignment);
  }
  const class Scratch scratch(bytes);
  std::vector<memory> pieces;
  pieces.reserve(pieces_.size());
  char* next = scratch.data();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const bool from_outside = i < given.size();
    pieces.emplace_back(pieces_[i], Cpu(),
                        from_outside ? const_cast<void*>(given[i].data) : next);
    if (!from_outside) next += Rounded(pieces_[i].get_size(), kAlignment);
  }
  const dnnl::stream stream(Cpu());
  for (const Step& step : steps_) {
    std::unordered_map<int, memory> arguments;
    for (const auto& [argument, piece] : step.arguments) {
      arguments.emplace(argument, pieces[piece]);
    }
    step.primitive.execute(stream, arguments);
  }
}

}  // namespace headrace
