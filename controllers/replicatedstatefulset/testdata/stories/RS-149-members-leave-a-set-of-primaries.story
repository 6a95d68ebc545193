  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 3 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    c-uid-13-0 runs
    c-uid-14-0 runs
    c-uid-15-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 0
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Primary, rss-db-1: another primary is wanted
  exec in pod rss-db-1: Primary, with rss-db-0.db-svc
    rss-db-1: /primary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-1 succeeded
  patch pod rss-db-1: Role, primary
  patch status of replicatedstatefulset db: Primary, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Primary, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-2: /primary rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

# replicas is set to 2
# rss-db-2 leave fails twice
  patch pod rss-db-2: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /leave rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc fails
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 failed with exit code 1
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /leave rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc fails
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 failed with exit code 1
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /leave rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 succeeded
  patch status of replicatedstatefulset db: Stop, rss-db-2: scaled down
  exec in pod rss-db-2: Stop, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /stop rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-2 succeeded; rss-db-2 is not primary: status reports that it has stopped
  patch statefulset rss-db: Scale, from 3 to 2
    rss-db-2 is deleted by its StatefulSet
    c-uid-15-0 ends
    c-uid-15-0 has ended, as its kubelet reports
  patch pod rss-db-2: Release
    rss-db-2 is removed by its kubelet
  patch status of replicatedstatefulset db: Learned
= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0 rss-db-1] secondary [] failed []

= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0 rss-db-1] secondary [] failed []

# replicas is set to 3
  patch statefulset rss-db: Scale, from 2 to 3
    rss-db-2 is created
    c-uid-16-0 runs
  patch status of replicatedstatefulset db: Primary, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Primary, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-2: /primary rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

# replicas is set to 1
  patch pod rss-db-2: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /leave rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 succeeded
  patch status of replicatedstatefulset db: Stop, rss-db-2: scaled down
  exec in pod rss-db-2: Stop, with rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc
    rss-db-2: /stop rss-db-0.db-svc rss-db-1.db-svc rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-2 succeeded; rss-db-2 is not primary: status reports that it has stopped
  patch pod rss-db-1: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-1: scaled down
  exec in pod rss-db-1: Leave, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-1: /leave rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-1 succeeded
  patch status of replicatedstatefulset db: Stop, rss-db-1: scaled down
  exec in pod rss-db-1: Stop, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-1: /stop rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-1 succeeded; rss-db-1 is not primary: status reports that it has stopped
  patch statefulset rss-db: Scale, from 3 to 1
    rss-db-1 is deleted by its StatefulSet
    rss-db-2 is deleted by its StatefulSet
    c-uid-14-0 ends
    c-uid-16-0 ends
    c-uid-14-0 has ended, as its kubelet reports
    c-uid-16-0 has ended, as its kubelet reports
  patch pod rss-db-1: Release
  patch pod rss-db-2: Release
    rss-db-1 is removed by its kubelet
    rss-db-2 is removed by its kubelet
  patch status of replicatedstatefulset db: Learned
= Running: ready [rss-db-0] primary [rss-db-0] secondary [] failed []

= Running: ready [rss-db-0] primary [rss-db-0] secondary [] failed []

# replicas is set to 3
  patch statefulset rss-db: Scale, from 1 to 3
    rss-db-1 is created
    rss-db-2 is created
    c-uid-17-0 runs
    c-uid-18-0 runs
  patch status of replicatedstatefulset db: Primary, rss-db-1: another primary is wanted
  exec in pod rss-db-1: Primary, with rss-db-0.db-svc
    rss-db-1: /primary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-1 succeeded
  patch pod rss-db-1: Role, primary
  patch status of replicatedstatefulset db: Primary, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Primary, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-2: /primary rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []
