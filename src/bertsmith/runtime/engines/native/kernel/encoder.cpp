// A post-norm BERT encoder on packed rows, one call a batch, one thread a call; plain C functions outside.
//
// Operands of products have the number format of the tier; sums, residuals, softmax and norms are
// float32. Rows of all texts stand one after another without padding; only attention looks at where
// a text begins and ends.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "attention.h"

namespace bertsmith {
namespace {

constexpr int kRows = 192;  // rows that pass through a feed-forward together, small enough for L2

struct Buffer {
  uint8_t* at = nullptr;
  size_t size = 0;

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(at); }

  bool reserve(size_t bytes) {
    if (bytes <= size) return true;
    std::free(at);
    constexpr size_t page = 2u << 20;
    size = (bytes + page - 1) / page * page;
    at = static_cast<uint8_t*>(std::aligned_alloc(page, size));
    if (!at) {
      size = 0;
      return false;
    }
#if defined(__linux__)
    madvise(at, size, MADV_HUGEPAGE);  // fewer TLB misses; a refusal costs nothing but speed
#endif
    std::memset(at, 0, size);
    return true;
  }
};

struct Linear {
  Buffer panels;
  std::vector<float> bias;
  int in = 0, out = 0;

  const num* weight() const { return reinterpret_cast<const num*>(panels.at); }
  bool prepare(int inputs, int outputs) {
    in = inputs;
    out = outputs;
    bias.assign(outputs, 0.0f);
    return panels.reserve(static_cast<size_t>(inputs) * outputs * sizeof(num));
  }
  void fill(const float* W, const float* b, int first, int outputs, float scale) {
    pack(W, outputs, in, scale, reinterpret_cast<num*>(panels.at) + static_cast<size_t>(first) * in);
    for (int n = 0; n < outputs; ++n) bias[first + n] = b[n] * scale;
  }
};

struct Norm {
  std::vector<float> gain, bias;
  void fill(const float* g, const float* b, int D) {
    gain.assign(g, g + D);
    bias.assign(b, b + D);
  }
};

struct Block {
  Linear qkv, output, up, down;
  Norm attention_norm, feed_forward_norm;
};

}  // namespace

struct Encoder {
  int layers, distinct, hidden, heads, feed_forward, embedding, activation, first_position;
  float eps;
  const float *tokens, *positions, *segments;  // the caller's tables, kept alive by the caller
  Norm embedding_norm;
  Linear project;
  std::vector<Block> blocks;
};

namespace {

void embed(const Encoder& e, const int32_t* ids, const int32_t* segments, const int32_t* starts, int texts,
           float* rows, num* rounded) {
  const int E = e.embedding;
  for (int t = 0; t < texts; ++t)
    for (int r = starts[t]; r < starts[t + 1]; ++r) {
      const float* token = e.tokens + static_cast<size_t>(ids[r]) * E;
      const float* place = e.positions + static_cast<size_t>(r - starts[t] + e.first_position) * E;
      const float* segment =
          e.segments ? e.segments + static_cast<size_t>(segments ? segments[r] : 0) * E : nullptr;
      float* row = rows + static_cast<size_t>(r) * E;
      for (int d = 0; d < E; d += kLanes) {
        vec sum = load_any(token + d) + load_any(place + d);
        if (segment) sum = sum + load_any(segment + d);
        store_any(row + d, sum);
      }
      layer_norm(row, rounded + static_cast<size_t>(r) * E, e.embedding_norm.gain.data(),
                 e.embedding_norm.bias.data(), E, e.eps);
    }
}

template <Activation kind>
void raise(const Linear& up, int rows, Operand from, num* to) {
  const float* bias = up.bias.data();
  multiply(rows, up.out, up.in, from, up.weight(), [&](int r, int c, vec v) {
    store_num(to + static_cast<size_t>(r) * up.out + c,
               activate<kind>(v + load_any(bias + c)));
  });
}

void raise(int kind, const Linear& up, int rows, Operand from, num* to) {
  switch (kind) {
    case kGelu: return raise<kGelu>(up, rows, from, to);
    case kGeluTanh: return raise<kGeluTanh>(up, rows, from, to);
    case kRelu: return raise<kRelu>(up, rows, from, to);
    default: return raise<kSilu>(up, rows, from, to);
  }
}

// hidden += linear(from), then its norm; `rounded` gets the copy in the format of operands.
void add_and_norm(const Linear& linear, const Norm& norm, float eps, int rows, Operand from, float* hidden,
                  num* rounded) {
  const int D = linear.out;
  const float* bias = linear.bias.data();
  multiply(rows, D, linear.in, from, linear.weight(), [&](int r, int c, vec v) {
    float* at = hidden + static_cast<size_t>(r) * D + c;
    store_any(at, v + load_any(bias + c) + load_any(at));
  });
  for (int r = 0; r < rows; ++r)
    layer_norm(hidden + static_cast<size_t>(r) * D, rounded + static_cast<size_t>(r) * D, norm.gain.data(),
               norm.bias.data(), D, eps);
}

struct Scratch {
  num *rounded, *qkv, *raised;
  uint8_t* attention;
};

void run_block(const Encoder& e, const Block& block, const int32_t* starts, int texts, float* hidden,
               const Scratch& s, const AttentionScratch& room) {
  const int D = e.hidden, T = starts[texts], width = D / e.heads;
  const float* bias = block.qkv.bias.data();
  for (int first = 0; first < T; first += kRows) {
    const int rows = T - first < kRows ? T - first : kRows;
    num* to = s.qkv + static_cast<size_t>(first) * 3 * D;
    multiply(rows, 3 * D, D, {s.rounded + static_cast<size_t>(first) * D, static_cast<size_t>(D)},
             block.qkv.weight(), [&](int r, int c, vec v) {
               store_num(to + static_cast<size_t>(r) * 3 * D + c, v + load_any(bias + c));
             });
  }
  // The context takes the place of the rounded rows: nobody reads them again before the norm writes them.
  for (int t = 0; t < texts; ++t)
    for (int h = 0; h < e.heads; ++h)
      attend(s.qkv + static_cast<size_t>(starts[t]) * 3 * D, s.rounded + static_cast<size_t>(starts[t]) * D,
             starts[t + 1] - starts[t], D, h, width, room);
  for (int first = 0; first < T; first += kRows) {
    const int rows = T - first < kRows ? T - first : kRows;
    num* rounded = s.rounded + static_cast<size_t>(first) * D;
    float* at = hidden + static_cast<size_t>(first) * D;
    const Operand narrow{rounded, static_cast<size_t>(D)};
    add_and_norm(block.output, block.attention_norm, e.eps, rows, narrow, at, rounded);
    raise(e.activation, block.up, rows, narrow, s.raised);
    add_and_norm(block.down, block.feed_forward_norm, e.eps, rows,
                 {s.raised, static_cast<size_t>(e.feed_forward)}, at, rounded);
  }
}

}  // namespace
}  // namespace bertsmith

using bertsmith::AttentionScratch;
using bertsmith::Encoder;
using bertsmith::num;

extern "C" {

// Whether the system hands out the registers this kernel needs.
int32_t bertsmith_permitted() {
#ifdef BERTSMITH_AMX
  return bertsmith::permit_tiles();
#else
  return 1;
#endif
}

// sizes: layers, distinct blocks, hidden, heads, feed-forward, embedding, activation, first position.
void* bertsmith_create(const int32_t* sizes, float eps, const float* tokens, const float* positions,
                       const float* segments, const float* norm_gain, const float* norm_bias,
                       const float* project, const float* project_bias) {
  auto* e = new (std::nothrow) Encoder{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],  sizes[5],
                                       sizes[6], sizes[7], eps,      tokens,   positions, segments,
                                       {},       {},       {}};
  if (!e) return nullptr;
  e->embedding_norm.fill(norm_gain, norm_bias, e->embedding);
  e->blocks = std::vector<bertsmith::Block>(e->distinct);
  bool room = true;
  for (auto& block : e->blocks)
    room = room && block.qkv.prepare(e->hidden, 3 * e->hidden) && block.output.prepare(e->hidden, e->hidden) &&
           block.up.prepare(e->hidden, e->feed_forward) && block.down.prepare(e->feed_forward, e->hidden);
  if (project) room = room && e->project.prepare(e->embedding, e->hidden);
  if (!room) {
    delete e;
    return nullptr;
  }
  if (project) e->project.fill(project, project_bias, 0, e->hidden, 1.0f);
  return e;
}

// parts: query, key, value, output, attention norm, up, down, feed-forward norm; weight then bias of each.
void bertsmith_fill(void* handle, int32_t index, const float* const* parts) {
  auto& e = *static_cast<Encoder*>(handle);
  auto& block = e.blocks[index];
  const int D = e.hidden;
  const float scale = bertsmith::kLog2E / __builtin_sqrtf(static_cast<float>(D / e.heads));
  block.qkv.fill(parts[0], parts[1], 0, D, scale);
  block.qkv.fill(parts[2], parts[3], D, D, 1.0f);
  block.qkv.fill(parts[4], parts[5], 2 * D, D, 1.0f);
  block.output.fill(parts[6], parts[7], 0, D, 1.0f);
  block.attention_norm.fill(parts[8], parts[9], D);
  block.up.fill(parts[10], parts[11], 0, e.feed_forward, 1.0f);
  block.down.fill(parts[12], parts[13], 0, D, 1.0f);
  block.feed_forward_norm.fill(parts[14], parts[15], D);
}

void bertsmith_free(void* handle) { delete static_cast<Encoder*>(handle); }

// Scratch bytes that `bertsmith_encode` needs for `rows` rows in texts of at most `longest`.
size_t bertsmith_scratch(const void* handle, int32_t rows, int32_t longest) {
  const auto& e = *static_cast<const Encoder*>(handle);
  const size_t held = rows + bertsmith::kSpareRows, D = e.hidden;
  return held * 4 * D * sizeof(num) +
         (bertsmith::kRows + bertsmith::kSpareRows) * size_t(e.feed_forward) * sizeof(num) +
         held * e.embedding * (4 + sizeof(num)) + AttentionScratch::bytes(longest, e.hidden / e.heads) + 64 * 8;
}

// ids and segments (T,), starts (texts + 1,) -> hidden (T, D); segments may be null.
void bertsmith_encode(const void* handle, const int32_t* ids, const int32_t* segments, const int32_t* starts,
                      int32_t texts, float* hidden, uint8_t* scratch) {
  const auto& e = *static_cast<const Encoder*>(handle);
  const int T = starts[texts];
  int longest = 0;
  for (int t = 0; t < texts; ++t) longest = std::max(longest, starts[t + 1] - starts[t]);
  const size_t held = T + bertsmith::kSpareRows, D = e.hidden;
  const auto take = [&](size_t bytes) {
    uint8_t* at = scratch;
    scratch += (bytes + 63) / 64 * 64;
    return at;
  };
  bertsmith::Scratch s;
  s.rounded = reinterpret_cast<num*>(take(held * D * sizeof(num)));
  s.qkv = reinterpret_cast<num*>(take(held * 3 * D * sizeof(num)));
  s.raised = reinterpret_cast<num*>(take((bertsmith::kRows + bertsmith::kSpareRows) * size_t(e.feed_forward) *
                                      sizeof(num)));
  const AttentionScratch room(take(AttentionScratch::bytes(longest, e.hidden / e.heads)), longest,
                              e.hidden / e.heads);
#ifdef BERTSMITH_AMX
  bertsmith::open_tiles();
#endif
  if (e.project.in) {
    auto* rows = reinterpret_cast<float*>(take(held * e.embedding * 4));
    auto* rounded = reinterpret_cast<num*>(take(held * e.embedding * sizeof(num)));
    bertsmith::embed(e, ids, segments, starts, texts, rows, rounded);
    const float* bias = e.project.bias.data();
    bertsmith::multiply(T, e.hidden, e.embedding, {rounded, size_t(e.embedding)}, e.project.weight(),
                        [&](int r, int c, bertsmith::vec v) {
                          const bertsmith::vec sum = v + bertsmith::load_any(bias + c);
                          bertsmith::store_any(hidden + r * D + c, sum);
                          bertsmith::store_num(s.rounded + r * D + c, sum);
                        });
  } else {
    bertsmith::embed(e, ids, segments, starts, texts, hidden, s.rounded);
  }
  for (int layer = 0; layer < e.layers; ++layer)
    bertsmith::run_block(e, e.blocks[layer % e.distinct], starts, texts, hidden, s, room);
#ifdef BERTSMITH_AMX
  bertsmith::close_tiles();
#endif
}

}  // extern "C"
