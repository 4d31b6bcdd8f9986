__version__ = "0.1.0"  # that of libbaton; a test compares them
