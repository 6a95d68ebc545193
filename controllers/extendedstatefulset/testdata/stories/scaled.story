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
# 4 replicas
  create persistentvolumeclaim data-db-3: Claim
  patch statefulset db-v1: Scale, ordinals 0 to 3
    db-v1-3 is created
    db-v1-3 is bound to n1
    db-v1-3 runs one
    db-v1-3 is Ready
= Stable, version 1, 4 Ready; db-v1 ordinals 0 to 3; active version 1
# 2 replicas
  patch statefulset db-v1: Scale, ordinals 0 to 1
    db-v1-2 is deleted by its StatefulSet
    db-v1-3 is deleted by its StatefulSet
    db-v1-2 is gone
    db-v1-3 is gone
= Stable, version 1, 2 Ready; db-v1 ordinals 0 to 1; active version 1
# 3 replicas
# the image is two
  patch status of extendedstatefulset db: Observed, Waiting, version 1
  patch statefulset db-v1: Scale, ordinals 0 to 2
    db-v1-2 is created
    db-v1-2 is bound to n3
    db-v1-2 runs one
    db-v1-2 is Ready
  patch status of extendedstatefulset db: Observed, Canary, version 1 to 2, attempt 1
  patch service db-active: Child, selects every version
  create statefulset db-v2: VersionCreated, no pods
  patch statefulset db-v1: Scale, ordinals 0 to 1
    db-v1-2 is deleted by its StatefulSet
    db-v1-2 is gone
  patch statefulset db-v2: Scale, ordinals 2 to 2
    db-v2-2 is created
# 5 replicas
  create persistentvolumeclaim data-db-4: Claim
  patch statefulset db-v2: Scale, ordinals 2 to 4
    db-v2-2 is bound to n3
    db-v2-3 is created
    db-v2-4 is created
    db-v2-2 runs two
    db-v2-2 is Ready
    db-v2-3 is bound to n1
    db-v2-4 is bound to n2
    db-v2-3 runs two
    db-v2-4 runs two
    db-v2-3 is Ready
    db-v2-4 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 1 to 2, attempt 1
  patch statefulset db-v1: Scale, ordinals 0 to 0
    db-v1-1 is deleted by its StatefulSet
    db-v1-1 is gone
  patch statefulset db-v2: Scale, ordinals 1 to 4
    db-v2-1 is created
    db-v2-1 is bound to n2
    db-v2-1 runs two
    db-v2-1 is Ready
  patch statefulset db-v1: Scale, no pods
    db-v1-0 is deleted by its StatefulSet
    db-v1-0 is gone
  patch statefulset db-v2: Scale, ordinals 0 to 4
    db-v2-0 is created
    db-v2-0 is bound to n1
    db-v2-0 runs two
    db-v2-0 is Ready
  patch status of extendedstatefulset db: Observed, CleaningUp, version 2
  patch service db-active: Child, selects version 2
  delete statefulset db-v1: OldVersion
  patch status of extendedstatefulset db: Observed, Stable, version 2
= Stable, version 2, 5 Ready; db-v2 ordinals 0 to 4; active version 2
# the image is three
  patch status of extendedstatefulset db: Observed, Canary, version 2 to 3, attempt 1
  patch service db-active: Child, selects every version
  create statefulset db-v3: VersionCreated, no pods
  patch statefulset db-v2: Scale, ordinals 0 to 3
    db-v2-4 is deleted by its StatefulSet
    db-v2-4 is gone
  patch statefulset db-v3: Scale, ordinals 4 to 4
    db-v3-4 is created
    db-v3-4 is bound to n2
    db-v3-4 runs three
    db-v3-4 is Ready
  patch status of extendedstatefulset db: Observed, Promoting, version 2 to 3, attempt 1
  patch statefulset db-v2: Scale, ordinals 0 to 2
    db-v2-3 is deleted by its StatefulSet
    db-v2-3 is gone
  patch statefulset db-v3: Scale, ordinals 3 to 4
    db-v3-3 is created
# 1 replicas
  patch statefulset db-v2: Scale, ordinals 0 to 0
  patch statefulset db-v3: Scale, no pods
    db-v3-3 is bound to n1
  patch statefulset db-v2: Scale, no pods
    db-v3-3 is deleted by its StatefulSet
    db-v3-4 is deleted by its StatefulSet
    db-v3-3 runs three
    db-v2-0 is deleted by its StatefulSet
    db-v2-1 is deleted by its StatefulSet
    db-v2-2 is deleted by its StatefulSet
    db-v3-3 is gone
    db-v3-4 is gone
    db-v2-0 is gone
    db-v2-1 is gone
    db-v2-2 is gone
  patch statefulset db-v3: Scale, ordinals 0 to 0
    db-v3-0 is created
    db-v3-0 is bound to n1
    db-v3-0 runs three
    db-v3-0 is Ready
  patch status of extendedstatefulset db: Observed, CleaningUp, version 3
  patch service db-active: Child, selects version 3
  delete statefulset db-v2: OldVersion
  patch status of extendedstatefulset db: Observed, Stable, version 3
= Stable, version 3, 1 Ready; db-v3 ordinals 0 to 0; active version 3
