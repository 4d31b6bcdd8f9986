#include "store/kubernetes/lease_object.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "json/json.h"
#include "store/kubernetes/object_name.h"

namespace baton::store::kubernetes {
namespace {

using nlohmann::json;

// Tokens are made of versions, and have 63 bits to stay within what databases count.
constexpr std::uint64_t kLastVersion = std::uint64_t{1} << 46;

constexpr const char* kKey = "baton/key";
constexpr const char* kDocument = "baton/document";
constexpr const char* kWake = "baton/wake";

std::uint64_t version_of(const json& metadata) {
  const auto& text = metadata.at("resourceVersion").get_ref<const std::string&>();
  std::uint64_t version = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (problem != std::errc{} || end != text.data() + text.size() || version == 0 ||
      version >= kLastVersion) {
    throw std::runtime_error("the resourceVersion '" + text.substr(0, 64) +
                             "' is no number as etcd counts: no token can be made of it");
  }
  return version;
}

std::string annotation(const json& metadata, const char* name) {
  const auto annotations = metadata.find("annotations");
  if (annotations == metadata.end()) return {};
  return annotations->value(name, std::string());
}

}  // namespace

Result<LeaseObject> parse_lease(std::string_view text) {
  try {
    json object = parse_json_or_throw(text);
    if (const auto inner = object.find("object"); inner != object.end()) {
      object = json(std::move(*inner));
    }
    json& metadata = object.at("metadata");
    LeaseObject lease;
    lease.name = metadata.at("name").get<std::string>();
    lease.uid = metadata.at("uid").get<std::string>();
    lease.version = version_of(metadata);
    lease.key = annotation(metadata, kKey);
    lease.document = annotation(metadata, kDocument);
    lease.wake = annotation(metadata, kWake);
    if (const auto spec = object.find("spec"); spec != object.end() && spec->is_object()) {
      lease.transitions = spec->value("leaseTransitions", std::int64_t{0});
    }
    metadata.erase("managedFields");
    if (const auto annotations = metadata.find("annotations"); annotations != metadata.end()) {
      annotations->erase(kDocument);
      annotations->erase(kWake);
    }
    lease.metadata = metadata.dump();
    return lease;
  } catch (const std::exception& problem) {
    return Error{.code = Code::bad_store,
                 .message = std::string("a Lease that cannot be read: ") + problem.what()};
  }
}

LeaseSpec spec_of(const core::NameState& state, const Timings& timings) {
  LeaseSpec spec;
  if (state.holders.size() != 1) return spec;
  const core::Holder& holder = state.holders.front();
  const auto timing = timings.find("h" + to_string(holder.grant));
  if (holder.mode != Mode::X || timing == timings.end()) return spec;
  spec.holder = holder.owner.empty() ? to_string(holder.grant) : holder.owner;
  spec.ttl = holder.ttl;
  spec.acquired = timing->second.since;
  spec.renewed = timing->second.at;
  return spec;
}

std::string print_wakes(const std::vector<core::Wake>& wakes) {
  std::string text;
  for (const core::Wake& wake : wakes) {
    // A channel is made by Baton's own clients and has neither; anybody else can do without.
    if (wake.channel.empty() || wake.channel.find_first_of(" =\"\\") != std::string::npos) continue;
    const std::string entry = wake.channel + "=" + to_string(wake.grant);
    if (text.find(entry) == std::string::npos) text += (text.empty() ? "" : " ") + entry;
  }
  return text;
}

std::vector<core::Wake> new_wakes(std::string_view text, std::string_view before) {
  std::vector<core::Wake> wakes;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || before.find(entry) != std::string_view::npos) continue;
    const auto grant = parse_grant_id(entry.substr(equals + 1));
    if (grant) wakes.push_back({std::string(entry.substr(0, equals)), *grant});
  }
  return wakes;
}

std::string print_lease(const std::string& key, const std::string& document,
                        const std::string& wake, const LeaseSpec& spec,
                        const LeaseObject* replaced) {
  json metadata = json::object();
  if (replaced != nullptr && !replaced->metadata.empty()) {
    metadata = parse_json_or_throw(replaced->metadata);
  }
  metadata["name"] = object_name(key);
  metadata["labels"][std::string(kOurLabel)] = kOurName;
  metadata["annotations"][kKey] = key;
  metadata["annotations"][kDocument] = document;
  if (!wake.empty()) metadata["annotations"][kWake] = wake;
  if (replaced != nullptr) {
    // The uid too: without it, an update of a Lease that is gone would make a new one.
    metadata["uid"] = replaced->uid;
    metadata["resourceVersion"] = std::to_string(replaced->version);
  }
  json content = {{"leaseTransitions", std::clamp<std::int64_t>(spec.transitions, 0, 1 << 30)}};
  if (!spec.holder.empty()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(spec.ttl).count();
    content["holderIdentity"] = spec.holder;
    content["leaseDurationSeconds"] = std::max<std::int64_t>(1, seconds);
    if (spec.renewed != ServerTime{0}) {
      content["acquireTime"] = print_micro_time(spec.acquired);
      content["renewTime"] = print_micro_time(spec.renewed);
    }
  }
  return json{{"apiVersion", "coordination.k8s.io/v1"},
              {"kind", "Lease"},
              {"metadata", std::move(metadata)},
              {"spec", std::move(content)}}
      .dump();
}

}  // namespace baton::store::kubernetes
