  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create service db-secondary: Child
  create poddisruptionbudget rss-db.primary: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 4 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    rss-db-3 is created
    c-uid-15-0 runs
    c-uid-16-0 runs
    c-uid-17-0 runs
    c-uid-18-0 runs
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
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

# primaries is set to 3
  patch poddisruptionbudget rss-db.primary: Child
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Promote, rss-db-1: another primary is wanted
  exec in pod rss-db-1: Promote, with rss-db-0.db-svc
    rss-db-1: /promote rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, promote of rss-db-1 succeeded
  patch pod rss-db-1: Role, primary
  patch status of replicatedstatefulset db: Promote, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Promote, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-2: /promote rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, promote of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
  patch poddisruptionbudget rss-db: Child
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0 rss-db-1 rss-db-2] secondary [rss-db-3] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0 rss-db-1 rss-db-2] secondary [rss-db-3] failed []

# primaries is set to 1
  patch poddisruptionbudget rss-db: Child
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Demote, rss-db-2: there are too many primaries
  exec in pod rss-db-2: Demote, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /demote rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc = 0
  patch poddisruptionbudget rss-db.primary: Child
  patch status of replicatedstatefulset db: Learned, demote of rss-db-2 succeeded; rss-db-2 is not primary: status reports that it is secondary
  patch poddisruptionbudget rss-db: Child
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-1: Role, secondary
  patch status of replicatedstatefulset db: Demote, rss-db-1: there are too many primaries
  exec in pod rss-db-1: Demote, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-1: /demote rss-db-0.db-svc rss-db-1.db-svc = 0
  patch poddisruptionbudget rss-db.primary: Child
  patch status of replicatedstatefulset db: Learned, demote of rss-db-1 succeeded; rss-db-1 is not primary: status reports that it is secondary
  patch poddisruptionbudget rss-db: Child
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []
