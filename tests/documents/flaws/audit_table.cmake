# The sealer goes on behind the row that it has sealed last, as if rows committed in the order of
# their numbers.
set(FILE apps/documents/audit/audit_table.cc)
set(REPLACE_1 [[#include "apps/documents/audit/audit_table.h"]])
set(WITH_1 [[#include "apps/documents/audit/audit_table.h"

#include "documents/flaw.h"]])
set(REPLACE_2 [[                                      " FROM audit_unsealed u JOIN audit_log a ON a.id = u.audit_id"
                                      " ORDER BY u.audit_id LIMIT $1",]])
set(WITH_2 [[                                      (baton::test::flawed("sealer_by_number")
                                           ? " FROM audit_log a WHERE a.id >"
                                             " (SELECT coalesce(max(audit_id), 0) FROM audit_seal)"
                                             " ORDER BY a.id LIMIT $1"
                                           : " FROM audit_unsealed u JOIN audit_log a"
                                             " ON a.id = u.audit_id"
                                             " ORDER BY u.audit_id LIMIT $1"),]])
