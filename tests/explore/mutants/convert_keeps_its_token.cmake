# A stronger hold goes on under the token of the weaker one.
set(FILE src/core/hold.cc)
set(REPLACE_1 [[if (!covers(own.mode, targets[i])) own.token = step.table.next();]])
set(WITH_1 [[]])
