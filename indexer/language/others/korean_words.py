"""Words of Korean: data alone."""

from indexer.language.base import Days, Language, Outcomes, Questions, Replies, Secrets, Sections
from indexer.language.fact_tables import Nouns, Values

KOREAN = Language(
    name="Korean",
    days=Days(
        near_within="오늘|내일|어제|[월화수목금토일]요일|명일",
        day_words={"그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1},
        latest_within="이번에|최근|요즘",
        happening_within="무슨 일",
        year_marks="년",
        month_marks="월",
        day_marks="일",
        particles="에는?|의|날",
        title_signs="년월일요수화목금토",
    ),
    replies=Replies(
        before_label="옵션",
        after_label="번|번째|요",
        assents=(
            "네|예|응|좋아|좋아요|좋습니다|좋네요|그래|그래요|그렇게 해주세요|진행해|진행해 주세요|진행하세요|동의"
            "|완벽해요|괜찮아요"
        ),
        refusals="죄송|도와드릴 수 없|유감",
        denials="いや|아니요?",
        go_on="계속|계속해|계속해줘|계속해 주세요|진행",
        all_options="둘 다|모두",
        ordinals={1: "첫 ?번째|첫째", 2: "두 ?번째|둘째", 3: "세 ?번째|셋째", 4: "네 ?번째|넷째", -1: "마지막"},
    ),
    sections=Sections(
        names={
            "goal": "목표|목적|과제",
            "constraints": "제약|제약 사항|제약사항|사용자 제약|규칙|요구사항",
            "decisions": "결정|결정 사항|결정사항",
            "progress": "진행|진행 상황|진행상황|현황",
            "done": "완료|완료됨|완료된 작업|한 일",
            "in progress": "진행 중|진행중|하는 중",
            "failed": "실패한 시도|실패|오류",
            "blocked": "차단됨|막힌 것",
            "asks": "미해결 질문|열린 질문|미해결 요청|질문",
            "todos": "할 일|남은 작업",
            "next": "다음 단계|다음",
            "files": "파일|관련 파일",
            "identifiers": "식별자",
            "context": "맥락|배경|사실|컨텍스트",
        },
    ),
    secrets=Secrets(passwords="비밀번호", password_hints=("비밀번호",)),
    questions=Questions(
        of_asker_within="나는|내가|나의|저는|제가|우리",
        overview_within="요약",
    ),
    values=Values(
        about_within="약",
        about_behind="정도",
    ),
    nouns=Nouns(
        names=frozenset({"이름", "제목"}),
    ),
    outcomes=Outcomes(
        signs=("오류",),
    ),
)
