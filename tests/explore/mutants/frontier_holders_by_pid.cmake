# Transactions are known by the pid of their session.
set(EXPLORES frontier)
set(FILE src/eventlog/frontier.cc)
set(REPLACE_1 [[bounds_.find(holder.transaction)]])
set(WITH_1 [[bounds_.find(std::to_string(holder.pid))]])
set(REPLACE_2 [[bounds.emplace(holder.transaction, bound)]])
set(WITH_2 [[bounds.emplace(std::to_string(holder.pid), bound)]])
