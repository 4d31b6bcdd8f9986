#include "baton/metrics.h"

#include <map>
#include <mutex>
#include <set>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "baton/name.h"

namespace baton::observe {
namespace {

constexpr std::size_t kMaxValueBytes = 128;
constexpr std::string_view kOther = "other";

std::string shown(const std::string& value) {
  if (!is_valid_utf8_text(value)) return std::string(kOther);
  if (value.size() <= kMaxValueBytes) return value;
  // Not in the middle of a character.
  std::size_t end = kMaxValueBytes;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80U) --end;
  return value.substr(0, end);
}

}  // namespace

class Metrics::Impl {
 public:
  explicit Impl(std::size_t max_series) : max_series_(max_series) {}

  template <typename Metric, typename... Arguments>
  void* series(prometheus::detail::Builder<Metric> build, const std::string& name,
               const std::string& help, const Labels& labels, const Arguments&... arguments) {
    const std::lock_guard lock(mutex_);
    prometheus::Family<Metric>& family = build.Name(name).Help(help).Register(registry_);
    return &family.Add(bounded(name, labels), arguments...);
  }

  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

 private:
  using Set = std::map<std::string, std::string>;

  Set bounded(const std::string& name, const Labels& labels) {
    Set set;
    for (const auto& [label, value] : labels) set[label] = shown(value);
    auto& known = known_[name];
    if (known.contains(set)) return set;
    if (known.size() < max_series_) {
      known.insert(set);
      return set;
    }
    for (auto& [label, value] : set) value = kOther;
    return set;
  }

  const std::size_t max_series_;
  std::mutex mutex_;
  std::map<std::string, std::set<Set>> known_;
  prometheus::Registry registry_;
};

Metrics::Metrics(std::size_t max_series) : impl_(std::make_unique<Impl>(max_series)) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  return Counter(impl_->series(prometheus::BuildCounter(), name, help, labels));
}

Gauge Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(impl_->series(prometheus::BuildGauge(), name, help, labels));
}

Histogram Metrics::histogram(const std::string& name, const std::string& help, const Labels& labels,
                             const std::vector<double>& buckets) {
  return Histogram(impl_->series(prometheus::BuildHistogram(), name, help, labels, buckets));
}

std::string Metrics::text() const { return impl_->text(); }

void Counter::add(double amount) const {
  static_cast<prometheus::Counter*>(series_)->Increment(amount);
}
void Gauge::set(double value) const { static_cast<prometheus::Gauge*>(series_)->Set(value); }
void Gauge::add(double amount) const {
  static_cast<prometheus::Gauge*>(series_)->Increment(amount);
}
void Histogram::observe(double value) const {
  static_cast<prometheus::Histogram*>(series_)->Observe(value);
}

const std::vector<double>& latency_buckets() {
  static const std::vector<double> buckets = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25,
                                              0.5,   1,      2.5,   5,    10,   30,   60};
  return buckets;
}

}  // namespace baton::observe
