  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create service db-secondary: Child
  create poddisruptionbudget rss-db.primary: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 3 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    c-uid-15-0 runs
    c-uid-16-0 runs
    c-uid-17-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 0
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /primary = 0
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Secondary, rss-db-1: another secondary is wanted
  exec in pod rss-db-1: Secondary, with rss-db-0.db-svc
    rss-db-1: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-1 succeeded
  patch pod rss-db-1: Role, secondary
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

# a switchover to rss-db-2 is requested
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-0: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-0: rss-db-2 takes over, as requested
  exec in pod rss-db-0: Stop, with rss-db-0.db-svc
    rss-db-0: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-0 succeeded; rss-db-0 is not primary: status reports that it has stopped
  patch status of replicatedstatefulset db: Promote, rss-db-2: it has the newest copy of the running members, sequence 10001
  exec in pod rss-db-2: Promote, alone
    rss-db-2: /primary = 0
  patch status of replicatedstatefulset db: Learned, promote of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
  patch replicatedstatefulset db: Override, rss-db-2 is primary, as requested
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Secondary, rss-db-0: another secondary is wanted
  exec in pod rss-db-0: Secondary, with rss-db-2.db-svc
    rss-db-0: /secondary rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-0 succeeded
  patch pod rss-db-0: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-2] secondary [rss-db-0 rss-db-1] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-2] secondary [rss-db-0 rss-db-1] failed []
