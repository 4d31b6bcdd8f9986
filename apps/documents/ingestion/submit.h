#pragma once

#include "http/message.h"
#include "observe/log.h"
#include "sql/connection.h"

namespace baton::documents::ingestion {

// POST /documents. One transaction: the key of the request, the document, DocumentUploaded.
//
//   Idempotency-Key     new                       201
//                       seen, with this body      the same answer again
//                       seen, with another body   422
//                       at work elsewhere         409; a lock of the transaction, so that a killed
//                                                 request leaves nothing behind
[[nodiscard]] http::Response submit(sql::Connection& database, const http::Request& request,
                                    const observe::Logger& log);

}  // namespace baton::documents::ingestion
