"""Words of Japanese: data alone."""

from indexer.language.base import Days, Language, Outcomes, Questions, Replies, Secrets, Sections
from indexer.language.fact_tables import Nouns, Values

JAPANESE = Language(
    name="Japanese",
    is_spaced=False,
    days=Days(
        near_within="明日|昨日|今日|来週|先週|[月火水木金土日]曜",
        day_words={"おととい": -2, "きのう": -1, "きょう": 0, "あした": 1, "一昨日": -2},
        latest_within="この頃|このごろ",
        title_signs="月火水木金土曜",
    ),
    replies=Replies(
        before_label="オプション|案",
        after_label="番目?|で|を|にします|お願いします|で?お願い",
        and_words="と",
        assents=(
            "はい|ええ|うん|いいです|いいですね|いいよ|いいね|お願いします|了解|了解です|問題ない|問題ありません"
            "|それで|承知しました|賛成|完璧"
        ),
        refusals="申し訳|すみません|ごめんなさい|お答えできません|お手伝いできません",
        denials="いいえ",
        go_on="続けて|続けてください|続き|続行|進めて",
        thanks="ありがとう",
        all_options="両方|全て",
        ordinals={1: "一つ目|最初", 2: "二つ目", 3: "三つ目", 4: "四つ目", -1: "最後"},
    ),
    sections=Sections(
        names={
            "goal": "ゴール|タスク",
            "constraints": "ユーザーの制約|ルール",
            "done": "完了済み|済み",
            "failed": "失敗した試み|エラー",
            "blocked": "ブロック中|ブロック",
            "asks": "未解決の質問|未回答の質問",
            "todos": "やること|残りのタスク",
            "next": "次のステップ|次の手順|次の一手",
            "files": "ファイル|関連ファイル",
            "context": "コンテキスト",
        },
    ),
    secrets=Secrets(passwords="パスワード", password_hints=("パスワード",)),
    questions=Questions(
        of_asker_within="[私僕俺]",
        overview_within="要約|まとめ",
    ),
    values=Values(
        about_within=r"\b(?:約|ほぼ)",
        about_behind="ほど|くらい|ぐらい|程度",
    ),
    nouns=Nouns(
        names=frozenset({"名前", "氏名"}),
    ),
    outcomes=Outcomes(
        signs=("エラー",),
    ),
)
