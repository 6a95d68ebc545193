  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create service db-secondary: Child
  create poddisruptionbudget rss-db.primary: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 2 pods
    rss-db-0 is created
    rss-db-1 is created
    c-uid-15-0 runs
    c-uid-16-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 0
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Secondary, rss-db-1: another secondary is wanted
  exec in pod rss-db-1: Secondary, with rss-db-0.db-svc
    rss-db-1: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-1 succeeded
  patch pod rss-db-1: Role, secondary
  patch poddisruptionbudget rss-db: Child

= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

# maintenance is set to [rss-db-1]
  patch status of replicatedstatefulset db: Learned, rss-db-1 is parked, as spec.maintenance requires
  patch pod rss-db-1: Role, none
= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

# c-uid-15-0 crashes
    c-uid-15-0 has ended, as its kubelet reports
  patch status of replicatedstatefulset db: Learned, rss-db-0 is not primary: its container has ended
  patch pod rss-db-0: Role, none
  patch poddisruptionbudget rss-db: Child
    c-uid-15-1 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 10002
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch poddisruptionbudget rss-db: Child
= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

# maintenance is set to []
  patch status of replicatedstatefulset db: Learned, rss-db-1 is no longer parked
  patch pod rss-db-1: Role, secondary
= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []
