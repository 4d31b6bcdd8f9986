# The head is a RETRY row if there is one, so that a redriven event overtakes.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[if (!head || rows[i].arrival < rows[*head].arrival) head = i;]])
set(WITH_1 [[if (!head || rows[i].status < rows[*head].status ||
        (rows[i].status == rows[*head].status && rows[i].arrival < rows[*head].arrival)) {
      head = i;
    }]])
