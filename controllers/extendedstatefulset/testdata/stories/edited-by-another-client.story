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
# another client edits db-v1
  patch statefulset db-v1: EditUndone, ordinals 0 to 2
= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
# another client edits db-v1
  patch statefulset db-v1: EditUndone
= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
# another client edits db-v1
  patch statefulset db-v1: Template
= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
# db-v1 is deleted
  create statefulset db-v1: VersionCreated, ordinals 0 to 2
    db-v1-0 is garbage
    db-v1-1 is garbage
    db-v1-2 is garbage
    db-v1-0 is gone
    db-v1-1 is gone
    db-v1-2 is gone
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
= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1
