-- From now on no command is run, and the number of pods stays.
obj.spec.paused = true
return obj
