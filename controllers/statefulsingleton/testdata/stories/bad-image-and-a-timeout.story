# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 2, RollingUpdate
    web-1-a is created
    web-1-b is created
    web-1-a is bound to n1
    web-1-b is bound to n2
    web-1-a waits at its gate
    web-1-b waits at its gate
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: web-1-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets image bad
    web-2-c is created
    web-1 is scaled to 1
    web-2-c is bound to n3
    web-2 is scaled to 2
    web-1 deletes web-1-b
    web-2-d is created
    web-2-d is bound to n1
    web-1-b stops
= Transitioning, active: web-1-a, waiting: web-2-c, web-2-d
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a keeps running; pod web-2-c will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-c
= Degraded False Healthy: no problems detected
# 5m1s pass
= Failed, active: web-1-a, waiting: web-2-c, web-2-d
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a keeps running; pod web-2-c will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-c
= Degraded True TransitionTimeout: the handover takes longer than maxTransitionTime (300 s): pod web-1-a keeps running; pod web-2-c will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-c; waiting: web-2-c, web-2-d; it continues as soon as this changes
# the user sets image one
    web-2 is scaled to 0
    web-1 is scaled to 2
    web-2 deletes web-2-d
    web-1-e is created
    web-2 deletes web-2-c
    web-1-e is bound to n2
    web-2-d does not start
    web-2-c does not start
    web-1-e waits at its gate
= Running, active: web-1-a, waiting: web-1-e
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
