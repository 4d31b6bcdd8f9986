#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "baton/fence.h"

namespace baton::cli {

// The database that the locks protect, as far as the fence in it goes.
class FenceDatabase {
 public:
  virtual ~FenceDatabase() = default;
  virtual Result<void> install() = 0;
  virtual Result<Token> highest() = 0;

  // In a transaction that is rolled back: records nothing.
  virtual Result<void> check(std::span<const FenceToken> tokens) = 0;
};

Result<std::unique_ptr<FenceDatabase>> open_sqlite_fence(std::string_view url);
Result<std::unique_ptr<FenceDatabase>> open_postgres_fence(const std::string& url);
Result<std::unique_ptr<FenceDatabase>> open_redis_fence(const std::string& url);

}  // namespace baton::cli
