# New rows behind one that fails are not entered into the retry index.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[    if (queued.look != 0) {
      decide]])
set(WITH_1 [[    if (queued.look == 0) {
      decide]])
