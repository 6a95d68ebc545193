  patch status of extendedstatefulset db: Observed, Promoting, version 1
  create service peers: Child
  create service db-active: Child
  create statefulset db-v1: VersionCreated, ordinals 0 to 2
    db-v1-0 is created
    db-v1-1 is created
    db-v1-2 is created
    db-v1-0 is bound to n1
    db-v1-1 is bound to n2
    db-v1-2 is bound to n3
    db-v1-0 runs one
    db-v1-1 runs one
    db-v1-2 runs one
    db-v1-0 is Ready
    db-v1-1 is Ready
    db-v1-2 is Ready
  patch status of extendedstatefulset db: Observed, Stable, version 1
= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
# the image is two
  patch status of extendedstatefulset db: Observed, PreJob, version 1 to 2, attempt 1
  create job db-pre-v2-1: Job, suspended
  patch status of extendedstatefulset db: Observed, PreJob, version 1 to 2, attempt 1, db-pre-v2-1 is known
  patch job db-pre-v2-1: Job, started
  patch status of extendedstatefulset db: Observed, Aborted, version 1 to 2, attempt 1, PreUpdateJobFailed, db-pre-v2-1 is known
  patch job db-pre-v2-1: Job, suspended: no longer needed
= Aborted, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
