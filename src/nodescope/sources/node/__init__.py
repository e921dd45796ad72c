"""The machine as a whole: who it is, its memory, its pressure, the time of its cores."""
