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

# c-uid-17-0 crashes
    c-uid-17-0 has ended, as its kubelet reports
  patch pod rss-db-2: Role, none
    c-uid-17-1 runs
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

# rss-db-0 is deleted
# rss-db-1 is deleted
# rss-db-2 is deleted
  patch poddisruptionbudget rss-db: Child
  patch pod rss-db-0: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-0: its pod is being deleted
  exec in pod rss-db-0: Stop, alone
    c-uid-15-0 ends
    c-uid-16-0 ends
    c-uid-17-1 ends
    rss-db-0: /stop ? the container is no longer running
  patch status of replicatedstatefulset db: Learned, stop was not sent to rss-db-0 and changed nothing there; it will be retried if it is still needed: the container is no longer running
    c-uid-15-0 has ended, as its kubelet reports
    c-uid-16-0 has ended, as its kubelet reports
    c-uid-17-1 has ended, as its kubelet reports
  patch status of replicatedstatefulset db: Learned, rss-db-0 is not primary: its container has ended
  patch pod rss-db-1: Release
  patch pod rss-db-2: Release
  patch pod rss-db-1: Role, none
  patch pod rss-db-2: Role, none
    rss-db-0 is removed by its kubelet
    rss-db-1 is removed by its kubelet
    rss-db-2 is removed by its kubelet
  patch pod rss-db-0: Release
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    c-uid-18-0 runs
    c-uid-19-0 runs
    c-uid-20-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 10002
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
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
