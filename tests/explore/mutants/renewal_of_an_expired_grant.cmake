# A grant whose time is over is renewed if nobody has come in between.
set(FILE src/core/verbs.cc)
set(REPLACE_1 [[holder->expires <= step.now || ]])
set(WITH_1 [[]])
