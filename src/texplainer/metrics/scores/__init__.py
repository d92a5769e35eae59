"""The metrics themselves: functions of arrays, a few lines each."""
