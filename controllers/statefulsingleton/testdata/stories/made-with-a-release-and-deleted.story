# the user creates the StatefulSingleton, and the user creates a Deployment with replicas 2, RollingUpdate, and the API server fails to write its status until it is deleted, while no operator runs, and the user deletes the StatefulSingleton
    web-1-a is created
    web-1-b is created
    web-1-a is bound to n1
    web-1-b is bound to n2
    web-1-a waits at its gate
    web-1-b waits at its gate
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
! Internal error occurred: etcd: patch status of statefulsingleton db: Observed
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: web-1-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing True ReleasingPods: the StatefulSingleton is being deleted, and remains until no pod waits for its turn: web-1-b; pod web-1-a may be running its program and was not asked to stop. New pods wait as well: scale their owner to one pod. To start all waiting pods at the same time: kubectl -n ns annotate statefulsingleton db apps.statefulsingleton.com/release-now=true
= Degraded False Healthy: no problems detected
# a user deletes the running pod
    web-1-c is created
    web-1-c is bound to n3
    web-1-a stops
    web-1-c waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-1-b, epoch 2
  patch pod web-1-b: Grant, epoch 2
  set a condition of pod web-1-b: Ready, True
    web-1-b runs its program
  patch pod web-1-b: Remind, epoch 2
= Running, active: web-1-b, waiting: web-1-c
= Available True ActivePodReady: pod web-1-b is running
= Progressing True ReleasingPods: the StatefulSingleton is being deleted, and remains until no pod waits for its turn: web-1-c; pod web-1-b may be running its program and was not asked to stop. New pods wait as well: scale their owner to one pod. To start all waiting pods at the same time: kubectl -n ns annotate statefulsingleton db apps.statefulsingleton.com/release-now=true
= Degraded False Healthy: no problems detected
# a user deletes the running pod
    web-1-d is created
    web-1-d is bound to n1
    web-1-b stops
    web-1-d waits at its gate
  patch pod web-1-b: Release
  patch status of statefulsingleton db: Holder, web-1-c, epoch 3
  patch pod web-1-c: Grant, epoch 3
  set a condition of pod web-1-c: Ready, True
    web-1-c runs its program
  patch pod web-1-c: Remind, epoch 3
= Running, active: web-1-c, waiting: web-1-d
= Available True ActivePodReady: pod web-1-c is running
= Progressing True ReleasingPods: the StatefulSingleton is being deleted, and remains until no pod waits for its turn: web-1-d; pod web-1-c may be running its program and was not asked to stop. New pods wait as well: scale their owner to one pod. To start all waiting pods at the same time: kubectl -n ns annotate statefulsingleton db apps.statefulsingleton.com/release-now=true
= Degraded False Healthy: no problems detected
