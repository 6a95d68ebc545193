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

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

# c-uid-15-0 crashes
    c-uid-15-0 has ended, as its kubelet reports
  patch status of replicatedstatefulset db: Learned, rss-db-0 is not primary: its container has ended
  patch pod rss-db-0: Role, none
  patch poddisruptionbudget rss-db: Child
    c-uid-15-1 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: it is not running and has the newest copy, sequence 10002
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch poddisruptionbudget rss-db: Child
  patch pod rss-db-1: Role, none
  patch pod rss-db-2: Role, none
  patch pod rss-db-1: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-1: status failed with exit code 1
  exec in pod rss-db-1: Stop, with rss-db-0.db-svc
    rss-db-1: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Stop, rss-db-2: status failed with exit code 1
  exec in pod rss-db-2: Stop, with rss-db-0.db-svc
    rss-db-2: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-1 succeeded
  patch status of replicatedstatefulset db: Learned, stop of rss-db-2 succeeded
  patch status of replicatedstatefulset db: Secondary, rss-db-1: another secondary is wanted
  exec in pod rss-db-1: Secondary, with rss-db-0.db-svc
    rss-db-1: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-1 succeeded
  patch pod rss-db-1: Role, secondary
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []
