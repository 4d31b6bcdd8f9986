# Only a newer token of the same mode overtakes.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[ && !compatible(newer.mode, older.mode)]])
set(WITH_1 [[ && newer.mode == older.mode && !compatible(newer.mode, older.mode)]])
