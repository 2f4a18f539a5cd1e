"""Published systems on Spider's development set, judged by every rule and by test suites."""
