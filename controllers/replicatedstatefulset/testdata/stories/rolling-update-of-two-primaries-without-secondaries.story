  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 4 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    rss-db-3 is created
    c-uid-13-0 runs
    c-uid-14-0 runs
    c-uid-15-0 runs
    c-uid-16-0 runs
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

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0 rss-db-1] secondary [] failed []

# the image is set to two
  patch statefulset rss-db: Template
  delete pod rss-db-3: Renew, its template is outdated, and it has no running member
    c-uid-16-0 ends
    c-uid-16-0 has ended, as its kubelet reports
  patch pod rss-db-3: Release
    rss-db-3 is removed by its kubelet
    rss-db-3 is created
    c-uid-17-0 runs
  delete pod rss-db-2: Renew, its template is outdated, and it has no running member
    c-uid-15-0 ends
    c-uid-15-0 has ended, as its kubelet reports
  patch pod rss-db-2: Release
    rss-db-2 is removed by its kubelet
    rss-db-2 is created
    c-uid-18-0 runs
  patch pod rss-db-1: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-1: its template is outdated
  exec in pod rss-db-1: Stop, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-1: /stop rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-1 succeeded; rss-db-1 is not primary: status reports that it has stopped
  delete pod rss-db-1: Renew, its template is outdated, and it has no running member
    c-uid-14-0 ends
    c-uid-14-0 has ended, as its kubelet reports
  patch pod rss-db-1: Release
  patch status of replicatedstatefulset db: Primary, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Primary, with rss-db-0.db-svc
    rss-db-1 is removed by its kubelet
    rss-db-2: /primary rss-db-0.db-svc = 0
    rss-db-1 is created
  patch status of replicatedstatefulset db: Learned, primary of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
    c-uid-19-0 runs
  patch pod rss-db-0: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-0: its template is outdated
  exec in pod rss-db-0: Stop, with rss-db-0.db-svc rss-db-2.db-svc
    rss-db-0: /stop rss-db-0.db-svc rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-0 succeeded; rss-db-0 is not primary: status reports that it has stopped
  delete pod rss-db-0: Renew, its template is outdated, and it has no running member
    c-uid-13-0 ends
    c-uid-13-0 has ended, as its kubelet reports
  patch pod rss-db-0: Release
  patch status of replicatedstatefulset db: Primary, rss-db-1: another primary is wanted
  exec in pod rss-db-1: Primary, with rss-db-2.db-svc
    rss-db-0 is removed by its kubelet
    rss-db-1: /primary rss-db-2.db-svc = 0
    rss-db-0 is created
  patch status of replicatedstatefulset db: Learned, primary of rss-db-1 succeeded
  patch pod rss-db-1: Role, primary
    c-uid-20-0 runs
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-1 rss-db-2] secondary [] failed []
