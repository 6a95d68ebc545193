# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 3, RollingUpdate
    web-1-a is created
    web-1-b is created
    web-1-a is bound to n1
    web-1-c is created
    web-1-b is bound to n2
    web-1-c is bound to n3
    web-1-a waits at its gate
    web-1-b waits at its gate
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-c waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: web-1-b, web-1-c
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user deletes the StatefulSingleton
= Running, active: web-1-a, waiting: web-1-b, web-1-c
= Available True ActivePodReady: pod web-1-a is running
= Progressing True ReleasingPods: the StatefulSingleton is being deleted, and remains until no pod waits for its turn: web-1-b, web-1-c; pod web-1-a may be running its program and was not asked to stop. New pods wait as well: scale their owner to one pod. To start all waiting pods at the same time: kubectl -n ns annotate statefulsingleton db apps.statefulsingleton.com/release-now=true
= Degraded False Healthy: no problems detected
# a user removes its finalizer
  patch pod web-1-a: LetGo
= the StatefulSingleton does not exist
# a user deletes the running pod
    web-1-d is created without a gate
    web-1-d is bound to n1
    web-1-a stops
    web-1-d runs its program without a gate
  patch pod web-1-b: LetGo
  set a condition of pod web-1-b: Ready, True
    web-1-b runs its program
= the StatefulSingleton does not exist
# a user deletes the running pod
    web-1-e is created without a gate
    web-1-e is bound to n1
    web-1-b stops
  patch pod web-1-c: LetGo
  set a condition of pod web-1-c: Ready, True
    web-1-e runs its program without a gate
    web-1-c runs its program
= the StatefulSingleton does not exist
