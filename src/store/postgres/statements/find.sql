SELECT * FROM baton.find(:prefix, :after, :idle, :max_rows, :max_waiters, :test_clock)
