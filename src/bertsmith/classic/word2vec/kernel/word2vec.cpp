// word2vec (Mikolov et al. 2013, arXiv:1301.3781, arXiv:1310.4546): skip-gram and CBoW, each with
// negative sampling, NCE or hierarchical softmax, on a stream of word ids.
//
// A window is one small product: M different neighbors (their inputs) times N outputs (the center
// and its noise words, or the inner nodes on the center's path). All gradients of a step are taken
// at the values before it; words that occur twice in a window, and noise words drawn twice, are one
// row with a weight, so that no store overwrites another one. Rows are padded with zeros to whole
// vectors, and stay zero there.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "products.h"

namespace {

enum Model { kSkipGram = 0, kCbow = 1 };
enum Loss { kNegative = 0, kHierarchical = 1, kNce = 2 };

}  // namespace

extern "C" {

// The layout is that of `KernelJob` in native.py.
struct Job {
  const int32_t* ids;         // 0 is the unknown word, which is left out; word w has row w - 1
  const int64_t* pieces;      // where each piece of text begins, and the end
  float* inputs;              // (V, stride)
  float* outputs;             // (V or V - 1, stride)
  const uint32_t* keep;       // (V,) a draw above it drops the word
  const uint32_t* noise;      // (V, 2) alias table: threshold and other word
  const float* shift;         // (V,) added to the scores: -log(k p), or null
  const int64_t* path_starts; // (V + 1,)
  const int32_t* path_nodes;  // from the root
  const int8_t* path_codes;
  int64_t* seen;              // words of all threads and epochs
  double rate, least_rate, total;
  int32_t words, stride, window, negatives, model, loss, sums, longest_path;
  int32_t hot;                // inner nodes next to the root that every thread has copies of
};

int32_t bertsmith_word2vec_lanes() { return kLanes; }

}  // extern "C"

namespace {

// The work on some pieces of text: buffers, random numbers, and what was counted.
class Worker {
 public:
  Worker(const Job& job, uint64_t seed, int32_t* trace, int64_t room)
      : job_(job),
        random_(seed),
        most_(2 * job.window),
        outputs_(job.loss == kHierarchical ? job.longest_path : job.negatives + 1),
        width_((outputs_ + 7) / 8 * 8 + 8),
        scores_((size_t)std::max(most_, kPair) * width_),
        held_((size_t)std::max(most_, kPair) * 2 * kLanes),
        context_((size_t)job.stride),
        change_((size_t)job.stride),
        labels_((size_t)3 * width_),
        neighbors_(most_),
        weights_(most_),
        rows_(most_),
        targets_(outputs_ + 1),
        target_rows_(outputs_ + 1),
        target_weights_(outputs_ + 1),
        drawn_(job.negatives + 1),
        first_hot_(job.words - 1 - job.hot),
        copies_((size_t)std::max(job.hot, 1) * job.stride),
        before_((size_t)std::max(job.hot, 1) * job.stride),
        touched_(job.hot),
        trace_(trace),
        room_(room) {}

  void run(int64_t first, int64_t last) {
    set_rate();
    exchange();
    std::vector<int32_t> text;
    for (int64_t piece = first; piece < last; ++piece) {
      text.clear();
      for (int64_t at = job_.pieces[piece]; at < job_.pieces[piece + 1]; ++at) {
        const int32_t word = job_.ids[at] - 1;
        if (word < 0) continue;
        ++since_;
        const uint32_t keep = job_.keep[word];
        if (keep != UINT32_MAX && random_.next() > keep) continue;
        text.push_back(word);
      }
      if (text.size() > 1) windows(text);
      if (since_ >= kWordsPerRate) {
        report();
        set_rate();
      }
    }
    report();
    exchange();
    loss_.flush();
  }

  double loss() const { return loss_.sum; }
  double pairs() const { return pairs_; }
  int64_t traced() const { return traced_; }

 private:
  void report() {
    __atomic_fetch_add(job_.seen, since_, __ATOMIC_RELAXED);
    since_ = 0;
  }

  void set_rate() {
    const double seen = (double)__atomic_load_n(job_.seen, __ATOMIC_RELAXED);
    rate_ = (float)std::max(job_.least_rate, job_.rate * (1.0 - seen / job_.total));
  }

  // Nodes next to the root are part of every path: threads that write to the same rows wait for
  // each other's cache lines. Each works on copies, and adds what they changed now and then.
  void exchange() {
    windows_ = 0;
    for (int row = 0; row < job_.hot; ++row) {
      float* shared = job_.outputs + (size_t)(first_hot_ + row) * job_.stride;
      float* own = copies_.memory + (size_t)row * job_.stride;
      float* old = before_.memory + (size_t)row * job_.stride;
      for (int c = 0; c < job_.stride; c += kLanes) {
        vec value = load(shared + c);
        if (touched_[row]) {
          value += load(own + c) - load(old + c);
          store(shared + c, value);
        }
        store(own + c, value);
        store(old + c, value);
      }
      touched_[row] = 0;
    }
  }

  void windows(const std::vector<int32_t>& text) {
    const int length = (int)text.size();
    draw(text[0]);
    for (int at = 0; at < length; ++at) {
      const int reach = job_.window - (int)random_.below((uint32_t)job_.window);
      const int begin = std::max(0, at - reach), end = std::min(length, at + reach + 1);
      different_ = 0;
      for (int place = begin; place < end; ++place)
        if (place != at) add_neighbor(text[place]);
      if (job_.hot && ++windows_ == kWindowsPerExchange) exchange();
      choose(text[at]);
      if (at + 1 < length) draw(text[at + 1]);
      if (trace_) write_trace(text[at]);
      if (job_.model == kSkipGram)
        skip_gram(end - begin - 1);
      else
        cbow(end - begin - 1);
    }
  }

  void add_neighbor(int32_t word) {
    for (int m = 0; m < different_; ++m)
      if (neighbors_[m] == word) {
        weights_[m] += 1.0f;
        return;
      }
    neighbors_[different_] = word;
    weights_[different_] = 1.0f;
    rows_[different_++] = job_.inputs + (size_t)word * job_.stride;
  }

  // Draw the noise of the window after this one and fetch its rows.
  void draw(int32_t center) {
    if (job_.loss == kHierarchical) {
      const int64_t from = job_.path_starts[center] + 4, to = job_.path_starts[center + 1];
      for (int64_t at = from; at < to; ++at)
        if (job_.path_nodes[at] < first_hot_)
          prefetch(job_.outputs + (size_t)job_.path_nodes[at] * job_.stride, job_.stride);
      return;
    }
    prefetch(job_.outputs + (size_t)center * job_.stride, job_.stride);
    for (int n = 0; n < job_.negatives; ++n) {
      const uint32_t place = random_.below((uint32_t)job_.words);
      const uint32_t* entry = job_.noise + 2 * (size_t)place;
      const uint32_t word = random_.next() < entry[0] ? place : entry[1];
      drawn_[n] = (int32_t)word;
      prefetch(job_.outputs + (size_t)word * job_.stride, job_.stride);
    }
  }

  // The outputs of a window: the center and its noise, or its path.
  void choose(int32_t center) {
    float *signs = labels_.memory, *shifts = signs + width_, *sizes = shifts + width_;
    count_ = 0;
    plain_ = true;
    if (job_.loss == kHierarchical) {
      for (int64_t at = job_.path_starts[center]; at < job_.path_starts[center + 1]; ++at)
        add_target(job_.path_nodes[at], job_.path_codes[at] ? -1.0f : 1.0f);
    } else {
      add_target(center, 1.0f);
      for (int n = 0; n < job_.negatives; ++n) {
        if (drawn_[n] == center) continue;
        int same = 1;
        while (same < count_ && targets_[same] != drawn_[n]) ++same;
        if (same < count_) {
          target_weights_[same] += 1.0f;
          plain_ = false;
        } else {
          add_target(drawn_[n], -1.0f);
        }
      }
    }
    for (int n = 0; n < count_; ++n) {
      shifts[n] = job_.shift ? job_.shift[targets_[n]] : 0.0f;
      sizes[n] = target_weights_[n];
    }
    for (int n = count_; n < width_; ++n) {
      signs[n] = 1.0f;
      shifts[n] = 2 * kFarthest;
      sizes[n] = 0.0f;
    }
  }

  void add_target(int32_t row, float sign) {
    labels_.memory[count_] = sign;
    target_weights_[count_] = 1.0f;
    targets_[count_] = row;
    float* place = job_.outputs + (size_t)row * job_.stride;
    if (job_.hot && row >= first_hot_) {
      touched_[row - first_hot_] = 1;
      place = copies_.memory + (size_t)(row - first_hot_) * job_.stride;
    }
    target_rows_[count_++] = place;
  }

  void skip_gram(int places) {
    pairs_ += places;
    if (job_.loss == kHierarchical) {
      for (int m = 0; m < different_; m += kPair) {
        const int together = std::min(kPair, different_ - m);
        score(rows_.data() + m, weights_.data() + m, together);
        if (together == 2)
          update_few<2>(rows_.data() + m, target_rows_.data(), count_, job_.stride, scores_.memory,
                        width_, nullptr);
        else
          update_few<1>(rows_.data() + m, target_rows_.data(), count_, job_.stride, scores_.memory,
                        width_, nullptr);
      }
      return;
    }
    score(rows_.data(), weights_.data(), different_);
    update(rows_.data(), different_);
  }

  void update(float* const* x, int m) {
    float* const* u = target_rows_.data();
    const int stride = job_.stride;
    const float* g = scores_.memory;
    switch (count_) {
      case 1: return update_held<1>(x, m, u, stride, g, width_);
      case 2: return update_held<2>(x, m, u, stride, g, width_);
      case 3: return update_held<3>(x, m, u, stride, g, width_);
      case 4: return update_held<4>(x, m, u, stride, g, width_);
      case 5: return update_held<5>(x, m, u, stride, g, width_);
      case 6: return update_held<6>(x, m, u, stride, g, width_);
#ifdef __AVX512F__
      case 7: return update_held<7>(x, m, u, stride, g, width_);
      case 8: return update_held<8>(x, m, u, stride, g, width_);
      case 9: return update_held<9>(x, m, u, stride, g, width_);
      case 10: return update_held<10>(x, m, u, stride, g, width_);
      case 11: return update_held<11>(x, m, u, stride, g, width_);
      case 12: return update_held<12>(x, m, u, stride, g, width_);
#endif
      default: return update_any(x, m, u, count_, stride, g, width_, held_.memory);
    }
  }

  void cbow(int places) {
    pairs_ += 1;
    const int stride = job_.stride;
    const float share = job_.sums ? 1.0f : 1.0f / (float)places;
    float* h = context_.memory;
    for (int c = 0; c < stride; c += kLanes) {
      vec sum = {};
      for (int m = 0; m < different_; ++m) sum += all(weights_[m]) * load(rows_[m] + c);
      store(h + c, sum * all(share));
    }
    const float one = 1.0f;
    score(&h, &one, 1);
    update_few<1>(&h, target_rows_.data(), count_, stride, scores_.memory, width_, change_.memory);
    const float back = job_.sums ? 1.0f / (float)places : 1.0f;
    for (int m = 0; m < different_; ++m) {
      const vec part = all(back * weights_[m]);
      for (int c = 0; c < stride; c += kLanes)
        store(rows_[m] + c, load(rows_[m] + c) + part * load(change_.memory + c));
    }
  }

  // Scores become gradients, (label - probability) x rate x weights; the loss is added up.
  void score(float* const* x, const float* weights, int m_count) {
    int m = 0;
    for (; m + 2 <= m_count; m += 2)
      dots_of<2>(x + m, target_rows_.data(), count_, job_.stride, scores_.memory + m * width_,
                 width_);
    if (m < m_count)
      dots_of<1>(x + m, target_rows_.data(), count_, job_.stride, scores_.memory + m * width_,
                 width_);
    const float *signs = labels_.memory, *shifts = signs + width_, *sizes = shifts + width_;
    const __m256 far = _mm256_set1_ps(kFarthest), one = _mm256_set1_ps(1.0f);
    for (m = 0; m < m_count; ++m) {
      const __m256 rate = _mm256_set1_ps(rate_ * weights[m]);
      float* row = scores_.memory + m * width_;
      for (int n = 0; n < count_; n += 8) {
        const __m256 sign = _mm256_loadu_ps(signs + n);
        __m256 s = _mm256_add_ps(_mm256_loadu_ps(row + n), _mm256_loadu_ps(shifts + n));
        // The score of a lane beyond the last output is whatever stood there.
        if (n + 8 > count_) s = _mm256_blendv_ps(s, far, beyond(n));
        s = _mm256_mul_ps(s, sign);
        s = _mm256_max_ps(_mm256_min_ps(s, far), _mm256_sub_ps(_mm256_setzero_ps(), far));
        const __m256 e = exp8(_mm256_sub_ps(_mm256_setzero_ps(), s));
        const __m256 p = _mm256_div_ps(one, _mm256_add_ps(one, e));
        const __m256 step = _mm256_mul_ps(_mm256_loadu_ps(sizes + n), rate);
        const __m256 wrong = _mm256_mul_ps(_mm256_mul_ps(e, p), sign);
        _mm256_storeu_ps(row + n, _mm256_mul_ps(wrong, step));
        loss_.add(p);
        if (!plain_ || weights[m] != 1.0f) add_weighted(p, n, weights[m]);
      }
    }
  }

  __m256 beyond(int n) const {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(places, _mm256_set1_epi32(count_ - n - 1)));
  }

  // What a weight beyond one adds to the loss.
  void add_weighted(__m256 p, int n, float weight) {
    float lanes[8];
    _mm256_storeu_ps(lanes, p);
    for (int k = 0; k < 8 && n + k < count_; ++k) {
      const double more = (double)weight * target_weights_[n + k] - 1.0;
      if (more > 0.0) loss_.sum -= more * std::log((double)lanes[k]);
    }
  }

  // rate, center, M, N, then neighbors, their weights, outputs, and their weights or codes.
  void write_trace(int32_t center) {
    const int64_t needed = 4 + 2 * different_ + 2 * count_;
    if (traced_ + needed > room_) {
      trace_ = nullptr;
      return;
    }
    int32_t* to = trace_ + traced_;
    std::memcpy(to, &rate_, 4);
    to[1] = center;
    to[2] = different_;
    to[3] = count_;
    to += 4;
    for (int m = 0; m < different_; ++m) *to++ = neighbors_[m];
    for (int m = 0; m < different_; ++m) *to++ = (int32_t)weights_[m];
    for (int n = 0; n < count_; ++n) *to++ = targets_[n];
    for (int n = 0; n < count_; ++n)
      *to++ = (int32_t)(labels_.memory[n] * target_weights_[n]);
    traced_ += needed;
  }

  const Job& job_;
  Random random_;
  const int most_, outputs_, width_;
  Scratch scores_, held_, context_, change_, labels_;
  std::vector<int32_t> neighbors_;
  std::vector<float> weights_;
  std::vector<float*> rows_;
  std::vector<int32_t> targets_;
  std::vector<float*> target_rows_;
  std::vector<float> target_weights_;
  std::vector<int32_t> drawn_;
  const int first_hot_;
  Scratch copies_, before_;
  std::vector<uint8_t> touched_;
  int32_t* trace_;
  int64_t room_, traced_ = 0, since_ = 0;
  int different_ = 0, count_ = 0, windows_ = 0;
  bool plain_ = true;
  float rate_ = 0.0f;
  double pairs_ = 0.0;
  LossSum loss_;
};

}  // namespace

extern "C" {

// Train on pieces first to last; `result` takes the sum of the losses and the number of pairs.
// Returns how much of `trace` was written.
int64_t bertsmith_word2vec_run(const Job* job, int64_t first, int64_t last, uint64_t seed,
                               double* result, int32_t* trace, int64_t room) {
  Worker worker(*job, seed, trace, room);
  worker.run(first, last);
  result[0] = worker.loss();
  result[1] = worker.pairs();
  return worker.traced();
}

// Draw noise words: how often each comes, for tests of the table.
void bertsmith_word2vec_noise(const Job* job, uint64_t seed, int64_t draws, int64_t* counts) {
  Random random(seed);
  for (int64_t n = 0; n < draws; ++n) {
    const uint32_t place = random.below((uint32_t)job->words);
    const uint32_t* entry = job->noise + 2 * (size_t)place;
    ++counts[random.next() < entry[0] ? place : entry[1]];
  }
}

}  // extern "C"
