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
# its machine loses power
    n1 is not Ready
= Running, active: web-1-a, waiting: web-1-b
= Available False ActivePodNotReady: cannot determine whether pod web-1-a is running: its Node n1 is unreachable
= Progressing False Steady: no handover in progress
= Degraded True NodeUnreachable: pod web-1-a may be running its program on Node n1, which is unreachable, and no other pod starts until this one has stopped. If the machine is off, taint the Node: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
# the control plane deletes the pods of the node
    web-1-c is created
    web-1-c is bound to n3
    web-1-c waits at its gate
= Transitioning, active: web-1-a, waiting: web-1-b, web-1-c
= Available False ActivePodNotReady: pod web-1-a is being deleted
= Progressing True WaitingForStop: pod web-1-a is being deleted; still running: container app; waiting: web-1-b, web-1-c
= Degraded True NodeUnreachable: pod web-1-a may be running its program on Node n1, which is unreachable, and no other pod starts until this one has stopped. If the machine is off, taint the Node: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
# an administrator adds the out-of-service taint
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-1-b, epoch 2
  patch pod web-1-b: Grant, epoch 2
  set a condition of pod web-1-b: Ready, True
    web-1-a is deleted by pod garbage collection
    web-1-b runs its program
  patch pod web-1-b: Remind, epoch 2
= Running, active: web-1-b, waiting: web-1-c
= Available True ActivePodReady: pod web-1-b is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the machine is switched on, and an administrator removes the taint
    n1 is Ready
= Running, active: web-1-b, waiting: web-1-c
= Available True ActivePodReady: pod web-1-b is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
