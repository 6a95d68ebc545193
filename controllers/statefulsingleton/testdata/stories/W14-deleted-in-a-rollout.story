# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 1, RollingUpdate
    web-1-a is created
    web-1-a is bound to n1
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-a waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets image two, and the user deletes the StatefulSingleton
    web-2-b is created
    web-2-b is bound to n2
    web-2-b waits at its gate
  delete pod web-1-a: Superseded, a pod of the newest revision waits for it
    web-1-c is created
    web-1-c is bound to n3
    web-1-a stops
    web-1-c waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-2-b, epoch 2
  patch pod web-2-b: Grant, epoch 2
  set a condition of pod web-2-b: Ready, True
    web-2-b runs its program
    web-1 is scaled to 0
    web-1 deletes web-1-c
  patch pod web-2-b: LetGo
  patch statefulsingleton db: Release
    web-1-c stops
= the StatefulSingleton does not exist
