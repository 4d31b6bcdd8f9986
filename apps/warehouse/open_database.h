#pragma once

#include "apps/warehouse/database.h"

namespace baton::warehouse {

[[nodiscard]] Result<std::unique_ptr<Database>> open_sqlite(const std::string& path,
                                                            const DatabaseOptions& options);
[[nodiscard]] Result<std::unique_ptr<Database>> open_postgres(const std::string& url,
                                                              const DatabaseOptions& options);

}  // namespace baton::warehouse
