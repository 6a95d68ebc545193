  patch status of extendedstatefulset db: Observed, Promoting, version 1
  create service peers: Child
  create service db-active: Child
  create statefulset db-z0-v1: VersionCreated, ordinals 0 to 1
  create statefulset db-z1-v1: VersionCreated, ordinals 0 to 1
    db-z0-v1-0 is created
    db-z0-v1-1 is created
    db-z1-v1-0 is created
    db-z1-v1-1 is created
    db-z0-v1-0 is bound to n1
    db-z0-v1-1 is bound to n2
    db-z1-v1-0 is bound to n3
    db-z1-v1-1 is bound to n1
    db-z0-v1-0 runs one
    db-z0-v1-1 runs one
    db-z1-v1-0 runs one
    db-z1-v1-1 runs one
    db-z0-v1-0 is Ready
    db-z0-v1-1 is Ready
    db-z1-v1-0 is Ready
    db-z1-v1-1 is Ready
  patch status of extendedstatefulset db: Observed, Stable, version 1
= Stable, version 1, 4 Ready; db-z0-v1 ordinals 0 to 1, db-z1-v1 ordinals 0 to 1; active version 1
# the image is two
  patch status of extendedstatefulset db: Observed, Canary, version 1 to 2, attempt 1 in zone a
  create statefulset db-z0-v2: VersionCreated, ordinals 0 to 0
    db-z0-v2-0 is created
    db-z0-v2-0 is bound to n2
    db-z0-v2-0 runs two
    db-z0-v2-0 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 2, attempt 1 in zone a
  patch statefulset db-z0-v2: Scale, ordinals 0 to 1
    db-z0-v2-1 is created
    db-z0-v2-1 is bound to n3
    db-z0-v2-1 runs two
    db-z0-v2-1 is Ready
  patch status of extendedstatefulset db: Observed, Canary, version 1 to 2, attempt 1 in zone b
  create statefulset db-z1-v2: VersionCreated, ordinals 0 to 0
    db-z1-v2-0 is created
    db-z1-v2-0 is bound to n1
    db-z1-v2-0 runs two
    db-z1-v2-0 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 2, attempt 1 in zone b
  patch statefulset db-z1-v2: Scale, ordinals 0 to 1
    db-z1-v2-1 is created
    db-z1-v2-1 is bound to n2
    db-z1-v2-1 runs two
    db-z1-v2-1 is Ready
  patch status of extendedstatefulset db: Observed, CleaningUp, version 2
  patch service db-active: Child, selects version 2
  patch statefulset db-z0-v1: Scale, no pods
  patch statefulset db-z1-v1: Scale, no pods
    db-z0-v1-0 is deleted by its StatefulSet
    db-z0-v1-1 is deleted by its StatefulSet
    db-z1-v1-0 is deleted by its StatefulSet
    db-z1-v1-1 is deleted by its StatefulSet
    db-z0-v1-0 is gone
    db-z0-v1-1 is gone
    db-z1-v1-0 is gone
    db-z1-v1-1 is gone
  delete statefulset db-z0-v1: OldVersion
  delete statefulset db-z1-v1: OldVersion
  patch status of extendedstatefulset db: Observed, Stable, version 2
= Stable, version 2, 4 Ready; db-z0-v2 ordinals 0 to 1, db-z1-v2 ordinals 0 to 1; active version 2
# zone c is added, zone b is removed, the order changes
  patch status of extendedstatefulset db: Observed, Stable, version 2
  create statefulset db-z2-v2: VersionCreated, ordinals 0 to 1
  patch statefulset db-z0-v2: Child
  delete statefulset db-z1-v2: ZoneGone
    db-z1-v2-0 is garbage
    db-z1-v2-1 is garbage
    db-z2-v2-0 is created
    db-z2-v2-1 is created
    db-z1-v2-0 is gone
    db-z1-v2-1 is gone
    db-z2-v2-0 is bound to n1
    db-z2-v2-1 is bound to n1
    db-z2-v2-0 runs two
    db-z2-v2-1 runs two
    db-z2-v2-0 is Ready
    db-z2-v2-1 is Ready
= Stable, version 2, 4 Ready; db-z0-v2 ordinals 0 to 1, db-z2-v2 ordinals 0 to 1; active version 2
# zone b is back
  patch statefulset db-z2-v2: Child
  patch statefulset db-z0-v2: Child
  create statefulset db-z1-v2: VersionCreated, ordinals 0 to 1
    db-z1-v2-0 is created
    db-z1-v2-1 is created
    db-z1-v2-0 is bound to n2
    db-z1-v2-1 is bound to n3
    db-z1-v2-0 runs two
    db-z1-v2-1 runs two
    db-z1-v2-0 is Ready
    db-z1-v2-1 is Ready
= Stable, version 2, 6 Ready; db-z0-v2 ordinals 0 to 1, db-z1-v2 ordinals 0 to 1, db-z2-v2 ordinals 0 to 1; active version 2
