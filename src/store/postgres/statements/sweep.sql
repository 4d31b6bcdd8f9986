SELECT baton.sweep(:after, :max_rows, :test_clock)
