  patch status of extendedstatefulset db: Observed, Promoting, version 1
  create persistentvolumeclaim data-db-0: Claim
  create persistentvolumeclaim data-db-1: Claim
  create persistentvolumeclaim data-db-2: Claim
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
  patch service db-active: Child, selects every version
  create statefulset db-v2: VersionCreated, no pods
  patch statefulset db-v1: Scale, ordinals 0 to 1
    db-v1-2 is deleted by its StatefulSet
    db-v1-2 is gone
  patch statefulset db-v2: Scale, ordinals 2 to 2
    db-v2-2 is created
    db-v2-2 is bound to n3
    db-v2-2 runs two
    db-v2-2 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 2, attempt 1
  patch statefulset db-v1: Scale, ordinals 0 to 0
    db-v1-1 is deleted by its StatefulSet
    db-v1-1 is gone
  patch statefulset db-v2: Scale, ordinals 1 to 2
    db-v2-1 is created
    db-v2-1 is bound to n2
    db-v2-1 runs two
    db-v2-1 is Ready
# the image is three
  patch status of extendedstatefulset db: Observed, Waiting, version 1
  patch statefulset db-v2: Scale, ordinals 2 to 2
    db-v2-1 is deleted by its StatefulSet
    db-v2-1 is gone
  patch statefulset db-v1: Scale, ordinals 0 to 1
    db-v1-1 is created
    db-v1-1 is bound to n2
    db-v1-1 runs one
    db-v1-1 is Ready
  patch statefulset db-v2: Scale, no pods
  patch service db-active: Child, selects version 1
    db-v2-2 is deleted by its StatefulSet
    db-v2-2 is gone
  patch statefulset db-v1: Scale, ordinals 0 to 2
    db-v1-2 is created
    db-v1-2 is bound to n3
    db-v1-2 runs one
    db-v1-2 is Ready
  patch status of extendedstatefulset db: Observed, Canary, version 1 to 3, attempt 1
  patch service db-active: Child, selects every version
  create statefulset db-v3: VersionCreated, no pods
  patch statefulset db-v1: Scale, ordinals 0 to 1
    db-v1-2 is deleted by its StatefulSet
    db-v1-2 is gone
  patch statefulset db-v3: Scale, ordinals 2 to 2
    db-v3-2 is created
    db-v3-2 is bound to n3
    db-v3-2 runs three
    db-v3-2 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 3, attempt 1
  patch statefulset db-v1: Scale, ordinals 0 to 0
    db-v1-1 is deleted by its StatefulSet
    db-v1-1 is gone
  patch statefulset db-v3: Scale, ordinals 1 to 2
    db-v3-1 is created
    db-v3-1 is bound to n2
    db-v3-1 runs three
    db-v3-1 is Ready
  patch statefulset db-v1: Scale, no pods
    db-v1-0 is deleted by its StatefulSet
    db-v1-0 is gone
  patch statefulset db-v3: Scale, ordinals 0 to 2
    db-v3-0 is created
    db-v3-0 is bound to n1
    db-v3-0 runs three
    db-v3-0 is Ready
  patch status of extendedstatefulset db: Observed, CleaningUp, version 3
  patch service db-active: Child, selects version 3
  delete statefulset db-v1: OldVersion
  delete statefulset db-v2: OldVersion
  patch status of extendedstatefulset db: Observed, Stable, version 3
= Stable, version 3, 3 Ready; db-v3 ordinals 0 to 2; active version 3
