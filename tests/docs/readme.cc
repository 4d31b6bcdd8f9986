#include <stop_token>

#include "baton/result.h"

struct pg_conn;

extern pg_conn* connection;
int tell(const baton::Error& error);
void build_report(const std::stop_token& lost);
void sql(pg_conn* connection, const char* statement);
int rollback();

#include "README.md.1.inc"
