#pragma once

// Who gets which events: the one agreement between the services besides the events themselves.
// Every service declares all of it when it starts, so that a queue is there before its service has
// ever run.

#include <string_view>

#include "baton/broker.h"

namespace baton::documents {

inline constexpr std::string_view kExchange = "documents";

namespace type {
inline constexpr std::string_view uploaded = "DocumentUploaded";
inline constexpr std::string_view validated = "DocumentValidated";
inline constexpr std::string_view rejected = "DocumentRejected";
inline constexpr std::string_view enriched = "DocumentEnriched";
inline constexpr std::string_view failed = "DocumentFailed";
}  // namespace type

namespace queue {
inline constexpr std::string_view status = "document.status.q";              // ingestion
inline constexpr std::string_view uploaded = "document.uploaded.q";          // validation
inline constexpr std::string_view validated = "document.validated.q";        // enrichment
inline constexpr std::string_view audit = "document.audit.q";                // audit
inline constexpr std::string_view notification = "document.notification.q";  // notification
}  // namespace queue

[[nodiscard]] Topology documents_topology();

}  // namespace baton::documents
