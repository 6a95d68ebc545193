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
  patch status of extendedstatefulset db: Observed, Canary, version 1 to 2, attempt 1
  create statefulset db-v2: VersionCreated, ordinals 0 to 0
    db-v2-0 is created
    db-v2-0 is bound to n1
    db-v2-0 runs two
    db-v2-0 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 2, attempt 1
  patch statefulset db-v2: Scale, ordinals 0 to 2
    db-v2-1 is created
    db-v2-2 is created
    db-v2-1 is bound to n2
    db-v2-2 is bound to n3
    db-v2-1 runs two
    db-v2-2 runs two
    db-v2-1 is Ready
    db-v2-2 is Ready
  patch status of extendedstatefulset db: Observed, CleaningUp, version 2
  patch service db-active: Child, selects version 2
  patch statefulset db-v1: Scale, no pods
    db-v1-0 is deleted by its StatefulSet
    db-v1-1 is deleted by its StatefulSet
    db-v1-2 is deleted by its StatefulSet
    db-v1-0 is gone
    db-v1-1 is gone
    db-v1-2 is gone
  delete statefulset db-v1: OldVersion
  patch status of extendedstatefulset db: Observed, Stable, version 2
= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2
