"""What others do better than MAHE, in English and Chinese. Written by hand, from what was read and measured of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Other:
    """A project, and sentences that go on after its name."""

    name: str
    english: str
    chinese: str


OTHERS = (
    Other(
        "Flower",
        "trains on GPUs, Android and iOS, in PyTorch, TensorFlow, JAX and more; has more strategies, secure "
        "aggregation and differential privacy; simulates up to 15 million clients on two large GPUs (its paper); is "
        "developed by many. A round of a small model is shorter there.",
        "可以在 GPU、Android 和 iOS 上训练，支持 PyTorch、TensorFlow、JAX 等；策略更多，还有安全聚合和差分隐私；"
        "能在两块大 GPU 上模拟多达一千五百万个客户端（据其论文）；参与开发的人很多。小模型的一轮在那里更短。",
    ),
    Other(
        "Hivemind",
        "needs no master: each PC averages a part of the model, so no single link carries everything, and PCs behind a "
        "firewall can take part. At the same number of bits two PCs exchange sooner there.",
        "不需要主控：每台电脑平均模型的一部分，所以没有哪一条线路承担全部流量，防火墙后面的电脑也能参加。"
        "位数相同时，两台电脑在那里交换得更快。",
    ),
    Other(
        "PyTorch DDP",
        "is exactly synchronous SGD on the batch of all PCs, while local steps can learn less from the same samples, "
        "most of all in short trainings; and on a fast link it loses far less time than on these.",
        "是对所有电脑的整个批次严格同步的 SGD，而本地步从同样多的样本里可能学得少一些，短的训练尤其如此；"
        "在快的网络上它损失的时间也比这里少得多。",
    ),
    Other(
        "torchft",
        "keeps trainings on GPU clusters going: on about 300 GPUs replicas were killed every 15 s, and the others went "
        "on without a checkpoint (PyTorch's blog).",
        "让 GPU 集群上的训练不中断：在大约 300 块 GPU 上每 15 秒杀掉一个副本，其余的不靠检查点就继续训练"
        "（据 PyTorch 博客）。",
    ),
    Other(
        "BOINC",
        "has results computed by several PCs until a majority agrees, counts credit, and asks the owner about "
        "everything: battery, hours, other programs, memory, network, with a reason for every pause.",
        "让几台电脑计算同一结果，直到多数一致；计算积分；并且什么都听机主的：电池、时段、其他程序、内存、网络，"
        "每次暂停都说明原因。",
    ),
    Other(
        "exo",
        "finds the other devices by itself, shows them as a picture, and lets several of them answer together from one "
        "language model.",
        "自动发现其他设备并画成图，让几台设备一起运行同一个语言模型来回答。",
    ),
)
