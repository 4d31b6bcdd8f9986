# The head is what arrived last.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[rows[i].arrival < rows[*head].arrival]])
set(WITH_1 [[rows[i].arrival > rows[*head].arrival]])
